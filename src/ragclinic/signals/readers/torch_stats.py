"""`torch.cuda.memory_stats()` as JSON: one object, a list with one for each device, or one object a line.

Keys of PyTorch 2.x are `allocated_bytes.all.current` and so on, or nested as
`memory_stats_as_nested_dict()` gives them. Beside them may stand `device` and a time (`time`, `timestamp` or
`ts`, in seconds or milliseconds since 1970), as programs that log the statistics each step add; `stats` may
hold them.
"""

from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from ragclinic.signals.readers.clock import Sweeps, epoch_ns
from ragclinic.signals.readers.elements import elements
from ragclinic.signals.readers.fields import number
from ragclinic.signals.readers.reader import Origin, Reader, ReadLog, ReadOptions
from ragclinic.signals.readers.torch_names import PREFIX
from ragclinic.signals.records import Record, Sample

TIMES = ("time", "timestamp", "ts")
TELLING = "allocated_bytes.all.current"
MAX_DEPTH = 4
MAX_VALUE = 2**63


def sniff(head: bytes) -> float:
    """Sure of the flat key, nearly so of the nested ones."""
    if not head.lstrip().startswith((b"{", b"[")):
        return 0.0
    if f'"{TELLING}"'.encode() in head:
        return 0.9
    return 0.8 if b'"allocated_bytes"' in head and b'"large_pool"' in head else 0.0


def parse_stats(stats: Mapping[str, Any], path: str = "", depth: int = 0) -> Iterator[tuple[str, float]]:
    """Name and value of each statistic, nested or flat."""
    for key, value in stats.items():
        name = f"{path}.{key}" if path else key
        if isinstance(value, dict) and depth < MAX_DEPTH:
            yield from parse_stats(value, name, depth + 1)
        elif isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < MAX_VALUE:
            yield PREFIX + name, float(value)


def read(stream: BinaryIO, origin: Origin, log: ReadLog, _options: ReadOptions) -> Iterator[Record]:
    """A sample for each statistic; a row is one device at one moment."""
    sweeps = Sweeps(origin, log)
    for place, (_, found, line) in enumerate(elements(stream, origin, log, {""})):
        here = origin.at(line)
        whole: dict[str, Any] = found if isinstance(found, dict) else {}
        inner = whole.get("stats")
        stats: dict[str, Any] = inner if isinstance(inner, dict) else whole
        samples = dict(parse_stats(stats))
        if PREFIX + TELLING not in samples:
            log.reject("no statistics", here, f"{str(found)[:60]}; expected the keys of memory_stats()")
            continue
        device = str(whole.get("device", stats.get("device", place)))
        try:
            time_ns = _time_ns({**stats, **whole})
        except ValueError as error:
            log.reject("no time", here, str(error))
            continue
        log.keep()
        when = sweeps.time_ns(device) if time_ns is None else time_ns
        for name, value in samples.items():
            if name.removeprefix(PREFIX) not in (*TIMES, "device"):
                yield Sample(when, name, value, {"device": device})


def _time_ns(fields: Mapping[str, Any]) -> int | None:
    value = next((number(fields[name]) for name in TIMES if name in fields), None)
    return None if value is None else epoch_ns(value)


READER = Reader(
    id="torch-memory-stats",
    versions=("PyTorch 2.x",),
    signals=("allocator memory", "fragmentation", "out of memory"),
    sniff=sniff,
    read=read,
)
