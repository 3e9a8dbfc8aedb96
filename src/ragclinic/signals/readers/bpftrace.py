"""`bpftrace -f json`: one object for each map, histogram or message, a line each or spread over lines.

Read: `src/output/json.cpp` and the expected outputs of its tests, of 2026-08. The metric is the map's name, its
key (`comm,pid`) a label. Histograms become cumulative buckets; bpftrace's upper bounds are inclusive, as `le`
is. Maps are printed without a time: a printed `time("%Y-%m-%d %H:%M:%S")` dates what follows, else the order is
kept.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from ragclinic.signals.readers.clock import Sweeps, find_time
from ragclinic.signals.readers.elements import elements
from ragclinic.signals.readers.fields import items, kind, obj
from ragclinic.signals.readers.fields import number as any_number
from ragclinic.signals.readers.reader import Origin, Reader, ReadLog, ReadOptions
from ragclinic.signals.records import Record, Sample

PREFIX = "bpftrace."
KEY = "key"
FAULTS = ("helper_error", "runtime_error")
STATISTICS = ("count", "average", "total")

Found = tuple[str, float, dict[str, str], str | None]
"""Name, value and labels of a sample, and its own time as printed, where it has one."""


def sniff(head: bytes) -> float:
    """Sure of the types of bpftrace's objects."""
    start = head[:4096]
    types = (b"attached_probes", b"map", b"hist", b"stats", b"printf", b"time", b"tseries", b"lost_events")
    said = any(b'"type": "' + name + b'"' in start for name in types)
    return 0.9 if said and (b'"@' in start or b"attached_probes" in start) else 0.0


def parse_object(found: Mapping[str, Any]) -> Iterator[Found]:
    """The samples of one object; empty where it is a message.

    Raises:
        ValueError: a map that is none.
    """
    what = found.get("type")
    if what not in ("map", "hist", "stats", "tseries"):
        return
    for name, value in obj(found.get("data"), "data").items():
        metric = PREFIX + (name.lstrip("@") or "map")
        if what == "map":
            yield from _map(metric, value)
        elif what == "stats":
            yield from _stats(metric, value)
        else:
            for key, rows in _by_key(value):
                yield from (_buckets if what == "hist" else _series)(metric, key, items(rows))


def read(stream: BinaryIO, origin: Origin, log: ReadLog, _options: ReadOptions) -> Iterator[Record]:
    """One sample for each value or bucket; a row is an object."""
    sweeps = Sweeps(origin, log)
    dated: int | None = None
    for _, found, line in elements(stream, origin, log, {""}):
        here = origin.at(line)
        what = found.get("type") if isinstance(found, dict) else None
        if what in FAULTS:
            log.reject("fault in the probe", here, f"{found.get('msg', found)}; expected the helper to succeed")
            continue
        try:
            samples = list(parse_object(obj(found, "the line")))
        except (ValueError, TypeError) as error:
            log.reject("not a map", here, str(error))
            continue
        if not samples:
            log.skip()
            if what == "time":
                dated = find_time(str(found.get("data")), here, log) or dated
            elif what == "lost_events":
                log.note(f"bpftrace lost events ({found.get('count', found.get('data'))}): counts are too low")
            continue
        log.keep()
        for name, value, labels, printed in samples:
            own = None if printed is None else find_time(printed, here, log)
            undated = own if own is not None else dated
            series = (name, tuple(sorted(labels.items())))
            yield Sample(sweeps.time_ns(series) if undated is None else undated, name, value, labels)


def number(value: Any) -> float | None:
    """The value as a finite number, or None."""
    found = any_number(value)
    return found if found is not None and math.isfinite(found) else None


def _map(metric: str, value: Any) -> Iterator[Found]:
    single = number(value)
    if single is not None:
        yield metric, single, {}, None
        return
    for key, entry in value.items() if isinstance(value, dict) else ():
        found = number(entry)
        if found is not None:
            yield metric, found, {KEY: key}, None


def _stats(metric: str, value: Any) -> Iterator[Found]:
    if number(value) is not None:  # avg()
        yield from _map(metric, value)
        return
    single = isinstance(value, dict) and set(value) <= set(STATISTICS)
    for key, entry in {None: value}.items() if single else obj(value, "stats").items():
        labels = {} if key is None else {KEY: key}
        if not isinstance(entry, dict):
            yield from ((m, v, {**labels}, t) for m, v, _, t in _map(metric, entry))
            continue
        for name in STATISTICS:
            found = number(entry.get(name))
            if found is not None:
                yield f"{metric}.{name}", found, labels, None


def _by_key(value: Any) -> Iterator[tuple[str | None, Any]]:
    if isinstance(value, dict):
        yield from value.items()
    else:
        yield None, value


def _buckets(metric: str, key: str | None, rows: list[Any]) -> Iterator[Found]:
    labels = {} if key is None else {KEY: key}
    total = 0.0
    for row in rows:
        bucket = obj(row, "a bucket")
        count, upper = number(bucket.get("count")), number(bucket.get("max"))
        if count is None:
            raise ValueError(f"bucket of {metric} has {kind(bucket.get('count'))}; expected a count")
        total += count
        if upper is not None:
            yield f"{metric}_bucket", total, {**labels, "le": f"{upper:g}"}, None
    yield f"{metric}_bucket", total, {**labels, "le": "+Inf"}, None


def _series(metric: str, key: str | None, rows: list[Any]) -> Iterator[Found]:
    labels = {} if key is None else {KEY: key}
    for row in rows:
        point = obj(row, "an interval")
        value = number(point.get("value"))
        if value is not None:
            yield metric, value, labels, str(point.get("interval_start"))


READER = Reader(
    id="bpftrace-json",
    versions=("bpftrace of 2026-08 and before",),
    signals=("run queue delay", "tcp connect time", "retransmits", "cuda calls"),
    sniff=sniff,
    read=read,
)
