"""Preallocated pools: buffers keyed by their exact shape, by a bucket of shapes, or pages of one size."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable

from ragclinic.physics.allocator.report import Report

Bucket = Callable[[int], int]
"""From a size asked for to the size of the buffer that serves it."""


def exact(size_bytes: int) -> int:
    """A buffer for each size of its own."""
    return size_bytes


def powers(size_bytes: int) -> int:
    """Buffers of the next power of two: at most half of each is wasted, and there are few sizes."""
    return 1 << max(0, math.ceil(math.log2(max(1, size_bytes))))


def geometric(ratio: float) -> Bucket:
    """Buffers of sizes that grow by this ratio: at most ratio - 1 of each is wasted."""
    step = math.log(ratio)
    return lambda size_bytes: math.ceil(ratio ** math.ceil(math.log(max(1, size_bytes)) / step - 1e-9))


class BufferPool:
    """Buffers kept for ever once made, found again by the size `bucket` gives.

    A request whose bucket has no free buffer is a miss: a new buffer is made from what the device has left. A
    buffer of another size never helps, and none is given back: the more sizes are asked for, the more memory
    stands idle. This is the conflict of a pool with dynamic batching; with `give_back` idle buffers of other
    sizes return to the device, the largest first, before a request fails.
    """

    def __init__(
        self,
        capacity_bytes: int,
        bucket: Bucket = exact,
        prepared: Iterable[int] = (),
        give_back: bool = False,
    ) -> None:
        self._capacity = capacity_bytes
        self._give_back = give_back
        self._bucket = bucket
        self._free: dict[int, int] = defaultdict(int)
        self._held: dict[int, tuple[int, int]] = {}
        self._allocated = self._reserved = self._peak = self._peak_reserved = 0
        self._calls = self._misses = 0
        self._failures = self._failures_with_room = 0
        for size in prepared:
            buffer = bucket(size)
            if self._reserved + buffer <= capacity_bytes:
                self._reserved += buffer
                self._calls += 1
                self._free[buffer] += 1

    def allocate(self, key: int, size_bytes: int) -> bool:
        """Takes a buffer for a key (see `Allocator`)."""
        self.release(key)
        buffer = self._bucket(size_bytes)
        if self._free[buffer]:
            self._free[buffer] -= 1
        else:
            self._misses += 1
            if self._give_back:
                self._make_room(buffer)
            if self._reserved + buffer > self._capacity:
                self._failures += 1
                self._failures_with_room += self._capacity - self._allocated >= size_bytes
                return False
            self._reserved += buffer
            self._peak_reserved = max(self._peak_reserved, self._reserved)
            self._calls += 1
        self._held[key] = (buffer, size_bytes)
        self._allocated += size_bytes
        self._peak = max(self._peak, self._allocated)
        return True

    def _make_room(self, buffer: int) -> None:
        for size in sorted((s for s, count in self._free.items() if count), reverse=True):
            while self._free[size] and self._reserved + buffer > self._capacity:
                self._free[size] -= 1
                self._reserved -= size
                self._calls += 1

    def release(self, key: int) -> None:
        """Puts a key's buffer back (see `Allocator`)."""
        found = self._held.pop(key, None)
        if found is not None:
            self._free[found[0]] += 1
            self._allocated -= found[1]

    def report(self) -> Report:
        """The state now (see `Allocator`)."""
        idle = max((size for size, count in self._free.items() if count), default=0)
        return Report(
            capacity_bytes=self._capacity,
            allocated_bytes=self._allocated,
            reserved_bytes=self._reserved,
            peak_allocated_bytes=self._peak,
            peak_reserved_bytes=max(self._peak_reserved, self._reserved),
            largest_free_bytes=max(idle, self._capacity - self._reserved),
            device_calls=self._calls,
            failures=self._failures,
            failures_with_room=self._failures_with_room,
            misses=self._misses,
        )


class PagePool:
    """Pages of one size, all made at the start; a request takes as many as it needs, from anywhere.

    No free page is ever useless, so all that is lost is the end of each request's last page (vLLM, arXiv
    2309.06180).
    """

    def __init__(self, capacity_bytes: int, page_bytes: int) -> None:
        self._page = page_bytes
        self._pages = capacity_bytes // page_bytes
        self._free = list(range(self._pages))
        self._held: dict[int, list[int]] = {}
        self._peak = self._failures = self._failures_with_room = 0

    def allocate(self, key: int, size_bytes: int) -> bool:
        """Takes pages for a key (see `Allocator`)."""
        self.release(key)
        count = -(-size_bytes // self._page)
        if count > len(self._free):
            self._failures += 1
            self._failures_with_room += len(self._free) * self._page >= size_bytes
            return False
        at = len(self._free) - count
        self._held[key] = self._free[at:]
        del self._free[at:]
        self._peak = max(self._peak, (self._pages - len(self._free)) * self._page)
        return True

    def release(self, key: int) -> None:
        """Gives a key's pages back (see `Allocator`)."""
        self._free.extend(self._held.pop(key, ()))

    def pages_of(self, key: int) -> tuple[int, ...]:
        """Which pages a key holds."""
        return tuple(self._held.get(key, ()))

    def report(self) -> Report:
        """The state now (see `Allocator`)."""
        free = len(self._free) * self._page
        capacity = self._pages * self._page
        return Report(
            capacity_bytes=capacity,
            allocated_bytes=capacity - free,
            reserved_bytes=capacity,
            peak_allocated_bytes=self._peak,
            peak_reserved_bytes=capacity,
            largest_free_bytes=free,
            device_calls=1,
            failures=self._failures,
            failures_with_room=self._failures_with_room,
        )
