"""What every allocator answers to, and what is said of one: peak, what is free, and in how large a piece."""

from dataclasses import dataclass
from typing import NamedTuple, Protocol


class Event(NamedTuple):
    """One allocation of `size_bytes` under a key, or with `size_bytes` None the release of that key."""

    key: int
    size_bytes: int | None


@dataclass(frozen=True, slots=True)
class Report:
    """The state of an allocator after some events, and its history.

    `largest_free_bytes` is the largest request that would succeed now; `device_calls` how often the driver was
    asked for memory or given some back (each stops the device); `failures` requests that found no memory, and
    `failures_with_room` those of them for which enough was free, but in pieces.
    """

    capacity_bytes: int
    allocated_bytes: int
    reserved_bytes: int
    peak_allocated_bytes: int
    peak_reserved_bytes: int
    largest_free_bytes: int
    device_calls: int
    failures: int
    failures_with_room: int
    misses: int = 0

    @property
    def free_bytes(self) -> int:
        """What is not allocated, wherever it lies."""
        return self.capacity_bytes - self.allocated_bytes

    @property
    def fragmentation_ratio(self) -> float:
        """The share of the free memory that the largest possible request cannot have, 0..1.

        External fragmentation: 1 - largest free / free (Wilson et al., Dynamic Storage Allocation, 1995).
        """
        return 1.0 - self.largest_free_bytes / self.free_bytes if self.free_bytes else 0.0

    @property
    def unused_ratio(self) -> float:
        """The share of what was taken from the device that holds nothing, 0..1: PyTorch's inactive memory."""
        return 1.0 - self.allocated_bytes / self.reserved_bytes if self.reserved_bytes else 0.0


class Allocator(Protocol):
    """Gives memory by key."""

    def allocate(self, key: int, size_bytes: int) -> bool:
        """Takes memory for a key; False where there is none, and then nothing is changed but the count."""
        ...

    def release(self, key: int) -> None:
        """Gives a key's memory back; a key that holds none is ignored."""
        ...

    def report(self) -> Report:
        """The state now."""
        ...
