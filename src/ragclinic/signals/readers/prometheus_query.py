"""The JSON of Prometheus' HTTP API: `query_range` (a matrix) and `query` (a vector).

Values are strings, times are seconds. The result of an expression that drops the name (`rate(...)`,
`histogram_quantile(...)`) names no metric, and a value without a name cannot be kept; asking for the bare
series gives names. Native histograms are read as buckets.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from ragclinic.errors import BadInput
from ragclinic.signals.readers.clock import epoch_ns
from ragclinic.signals.readers.elements import elements
from ragclinic.signals.readers.fields import obj
from ragclinic.signals.readers.finite import finite
from ragclinic.signals.readers.prometheus_lacks import SeenNames
from ragclinic.signals.readers.reader import Origin, Reader, ReadLog, ReadOptions
from ragclinic.signals.records import Record, Sample

NAME = "__name__"
SERIES, ERROR = "data.result.item", "error"


def sniff(head: bytes) -> float:
    """Sure where the result type, or the type of an error, stands beside the status."""
    start = head[:4096]
    return 0.95 if b'"status"' in start and (b'"resultType"' in start or b'"errorType"' in start) else 0.0


def parse_series(series: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, str], float, float]]:
    """Name, labels, time in seconds and value of each point of one element of `data.result`.

    Raises:
        ValueError: it is no series, or has no name.
    """
    metric = series.get("metric")
    if not isinstance(metric, dict) or not all(isinstance(v, str) for v in metric.values()):
        raise ValueError(f"{str(series)[:80]}; expected an object with a metric of strings")
    labels = dict(metric)
    name = labels.pop(NAME, None)
    if name is None:
        raise ValueError(f"{labels}; expected a {NAME}: query the bare series, not an expression over it")
    for time_s, value in _points(series, "value", "values"):
        yield name, labels, finite(str(time_s)), float(str(value))
    for time_s, found in _points(series, "histogram", "histograms"):
        for suffix, edge, count in _buckets(found):
            yield f"{name}{suffix}", labels if edge is None else {**labels, "le": edge}, finite(str(time_s)), count


def read(stream: BinaryIO, origin: Origin, log: ReadLog, _options: ReadOptions) -> Iterator[Record]:
    """One sample a point; a row is a point, or a series that is none."""
    names = SeenNames()
    for path, value, line in elements(stream, origin, log, {SERIES, ERROR}):
        here = origin.at(line)
        if path == ERROR:
            raise BadInput(f"{origin}: Prometheus answered: {value}; expected a result; mend the query")
        try:
            for name, labels, time_s, number in parse_series(obj(value, "a series")):
                if not math.isfinite(number):
                    log.reject("value not finite", here, f"{name} is {number}; expected a number")
                    continue
                sample = Sample(epoch_ns(time_s), name, number, labels)
                log.keep()
                names.add(name)
                yield sample
        except (ValueError, TypeError, AttributeError, KeyError) as error:
            log.reject("not a series", here, str(error))
    names.say(log)


def _points(series: Mapping[str, Any], single: str, many: str) -> Iterator[tuple[Any, Any]]:
    points = series.get(many, [])
    if single in series:
        points = [series[single], *points]
    for point in points:
        if not isinstance(point, list) or len(point) != 2:
            raise ValueError(f"point {str(point)[:80]}; expected [time, value]")
        yield point[0], point[1]


def _buckets(found: Mapping[str, Any]) -> Iterator[tuple[str, str | None, float]]:
    """A native histogram as cumulative buckets: suffix, upper edge and count."""
    count = 0.0
    for _, _, upper, inside in found.get("buckets", []):
        count += float(inside)
        yield "_bucket", str(float(upper)), count
    yield "_bucket", "+Inf", float(found["count"])
    yield "_sum", None, float(found["sum"])
    yield "_count", None, float(found["count"])


READER = Reader(
    id="prometheus-query",
    versions=("Prometheus HTTP API v1",),
    signals=("kv usage", "queue", "preemptions", "prefix hits", "latency histograms", "device memory", "pcie"),
    sniff=sniff,
    read=read,
)
