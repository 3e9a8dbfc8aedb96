"""Runs events through an allocator, and takes events from a PyTorch memory snapshot."""

from collections.abc import Iterable, Iterator, Mapping

from ragclinic.physics.allocator.report import Allocator, Event, Report


def replay(allocator: Allocator, events: Iterable[Event]) -> Report:
    """What the allocator says after all events; a request that fails is counted and the rest goes on."""
    for event in events:
        if event.size_bytes is None:
            allocator.release(event.key)
        else:
            allocator.allocate(event.key, event.size_bytes)
    return allocator.report()


def snapshot_events(trace: Iterable[Mapping[str, object]]) -> Iterator[Event]:
    """The events of one device's `device_traces` in `torch.cuda.memory._snapshot()`.

    `alloc` takes an address, `free_completed` gives it back; what concerns segments is the recorded allocator's
    own affair and passed over. An entry without a whole address and size raises `ValueError` with its number.
    """
    for number, entry in enumerate(trace):
        action = entry.get("action")
        if action not in ("alloc", "free_completed"):
            continue
        address, size = entry.get("addr"), entry.get("size")
        if not isinstance(address, int) or not isinstance(size, int) or size < 0:
            raise ValueError(f"entry {number}: {action} at {address!r} of {size!r}; expected whole numbers")
        yield Event(address, size if action == "alloc" else None)
