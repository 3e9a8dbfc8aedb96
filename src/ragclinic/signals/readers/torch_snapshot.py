"""`torch.cuda.memory._dump_snapshot()`: the allocator's segments and blocks, and what happened to them.

Read: `torch/cuda/_memory_viz.py` of PyTorch 2.x. Before 2.0 the pickle was the bare list of segments. Newer traces
hold `time_us`; without it events only keep their order.

A pickle is a program; this one is only read by `plain_pickle`, which executes nothing.
"""

from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO, NamedTuple

from ragclinic.signals.readers.fields import items, kind, obj
from ragclinic.signals.readers.plain_pickle import load_plain
from ragclinic.signals.readers.reader import Origin, Reader, ReadLog, ReadOptions
from ragclinic.signals.readers.torch_names import (
    ACTIVE,
    ALLOCATED,
    INACTIVE_SPLIT,
    LARGEST_FREE,
    OOM,
    OOM_FREE,
    RESERVED,
)
from ragclinic.signals.records import Record, Sample

MAX_BYTES = 1024 * 1024 * 1024
"""A snapshot is read whole; larger ones are refused."""
MAX_US = 2**62 // 1000
GROWS, SHRINKS = (
    {"alloc": ALLOCATED, "segment_alloc": RESERVED, "segment_map": RESERVED},
    {
        "free_completed": ALLOCATED,
        "segment_free": RESERVED,
        "segment_unmap": RESERVED,
    },
)


class Block(NamedTuple):
    """A piece of a segment. `state` is `active_allocated`, `active_pending_free` or `inactive`."""

    size_bytes: int
    state: str


class Segment(NamedTuple):
    """What one call of cudaMalloc gave, cut into blocks that follow one another from `address`."""

    device: int
    address: int
    total_bytes: int
    allocated_bytes: int
    active_bytes: int
    blocks: tuple[Block, ...]


class Event(NamedTuple):
    """One thing that happened: `alloc`, `free_completed`, `segment_alloc`, `oom` ..."""

    device: int
    action: str
    size_bytes: int
    time_ns: int | None
    free_bytes: int | None


class Snapshot(NamedTuple):
    """Everything a snapshot holds that is used here; `bad` says what could not be read."""

    segments: tuple[Segment, ...]
    events: tuple[Event, ...]
    bad: tuple[str, ...]


def parse_snapshot(found: Any) -> Snapshot:
    """The snapshot out of what `load_plain` gave.

    Raises:
        ValueError: it holds no segments.
    """
    if isinstance(found, list):
        found = {"segments": found}
    if not isinstance(found, dict) or not isinstance(found.get("segments"), list):
        raise ValueError(f"{kind(found)} without segments; expected the pickle of a memory snapshot")
    bad: list[str] = []
    segments, events = [], []
    for segment in found["segments"]:
        try:
            segments.append(_segment(obj(segment, "a segment")))
        except (ValueError, KeyError, TypeError) as error:
            bad.append(f"segment: {error}")
    for device, trace in enumerate(items(found.get("device_traces"))):
        for event in items(trace):
            try:
                events.append(_event(device, obj(event, "an event")))
            except (ValueError, KeyError, TypeError) as error:
                bad.append(f"event: {error}")
    return Snapshot(tuple(segments), tuple(events), tuple(bad))


def sniff(head: bytes) -> float:
    """Sure of a binary pickle that soon names segments or traces."""
    if head[:1] != b"\x80" or head[1:2] not in (b"\x02", b"\x03", b"\x04", b"\x05"):
        return 0.0
    telling = (b"device_traces", b"segments", b"total_size", b"free_completed")
    return 0.9 if sum(word in head for word in telling) >= 2 else 0.0


def read(stream: BinaryIO, origin: Origin, log: ReadLog, _options: ReadOptions) -> Iterator[Record]:
    """Samples of the whole at the end, and one for each event; a row is a segment or an event."""
    data = stream.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        log.reject("too large", origin, f"more than {MAX_BYTES} bytes; expected a smaller snapshot (max_entries)")
        return
    try:
        snapshot = parse_snapshot(load_plain(data))
    except ValueError as error:
        log.reject("no snapshot", origin, str(error))
        return
    for text in snapshot.bad:
        log.reject(text.partition(":")[0] + " not readable", origin, text)
    log.keep(len(snapshot.segments) + len(snapshot.events))
    if not snapshot.events:
        log.lacks("allocation history", "torch.cuda.memory._record_memory_history() before the work")
    end_ns = max((e.time_ns for e in snapshot.events if e.time_ns is not None), default=origin.modified_ns or 0)
    totals = {device: _totals(snapshot, device) for device in sorted({s.device for s in snapshot.segments})}
    yield from _course(snapshot, totals, end_ns)
    for device, values in totals.items():
        for name, value in values.items():
            yield Sample(end_ns + 1, name, float(value), {"device": str(device)})


def _segment(found: Mapping[str, Any]) -> Segment:
    blocks = tuple(Block(_size(b["size"]), str(b["state"])) for b in items(found.get("blocks")))
    return Segment(
        device=int(found["device"]),
        address=int(found["address"]),
        total_bytes=_size(found["total_size"]),
        allocated_bytes=_size(found["allocated_size"]),
        active_bytes=_size(found["active_size"]),
        blocks=blocks,
    )


def _event(device: int, found: Mapping[str, Any]) -> Event:
    time_us, free = found.get("time_us"), found.get("device_free")
    return Event(
        device=device,
        action=str(found["action"]),
        size_bytes=_size(found.get("size", 0)),
        time_ns=None if time_us is None else _size(time_us, MAX_US) * 1000,
        free_bytes=None if free is None else _size(free),
    )


def _size(value: Any, limit: int = 2**60) -> int:
    if not isinstance(value, int) or not 0 <= value < limit:
        raise ValueError(f"{kind(value)}; expected a whole number of at least zero")
    return value


def _totals(snapshot: Snapshot, device: int) -> dict[str, int]:
    segments = [s for s in snapshot.segments if s.device == device]
    free = [b.size_bytes for s in segments for b in s.blocks if b.state == "inactive"]
    # Free memory inside a segment that is in use cannot be given back to the driver.
    split = sum(b.size_bytes for s in segments if s.active_bytes for b in s.blocks if b.state == "inactive")
    return {
        RESERVED: sum(s.total_bytes for s in segments),
        ALLOCATED: sum(s.allocated_bytes for s in segments),
        ACTIVE: sum(s.active_bytes for s in segments),
        INACTIVE_SPLIT: split,
        LARGEST_FREE: max(free, default=0),
    }


def _course(snapshot: Snapshot, totals: Mapping[int, Mapping[str, int]], end_ns: int) -> Iterator[Sample]:
    """What was allocated and reserved after each event, counted back from the end, which the segments tell."""
    level = {
        (device, name): totals.get(device, {}).get(name, 0) - _net(snapshot, device, name)
        for device in {e.device for e in snapshot.events}
        for name in (ALLOCATED, RESERVED)
    }
    count = len(snapshot.events)
    for place, event in enumerate(snapshot.events):
        time_ns = end_ns - count + place if event.time_ns is None else event.time_ns
        labels = {"device": str(event.device)}
        name = GROWS.get(event.action) or SHRINKS.get(event.action)
        if name is not None:
            change = event.size_bytes if event.action in GROWS else -event.size_bytes
            level[event.device, name] += change
            yield Sample(time_ns, name, float(level[event.device, name]), labels)
        elif event.action == "oom":
            yield Sample(time_ns, OOM, float(event.size_bytes), labels)
            if event.free_bytes is not None:
                yield Sample(time_ns, OOM_FREE, float(event.free_bytes), labels)


def _net(snapshot: Snapshot, device: int, name: str) -> int:
    return sum(
        (e.size_bytes if GROWS.get(e.action) == name else 0)
        - (e.size_bytes if SHRINKS.get(e.action) == name else 0)
        for e in snapshot.events
        if e.device == device
    )


READER = Reader(
    id="torch-memory-snapshot",
    versions=("PyTorch 1.12 and 1.13", "PyTorch 2.x"),
    signals=("allocator memory", "fragmentation", "out of memory", "allocation history"),
    sniff=sniff,
    read=read,
)
