"""OTLP metrics as samples: gauges and sums under their own name, histograms as cumulative buckets with `le`.

Deltas are added up, since everything that reads histograms here expects counts that grow. `service.name` and
`service.instance.id` of the resource become the labels `job` and `instance`, as OpenTelemetry's Prometheus
compatibility has it.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from ragclinic.signals.readers.fields import items, number, obj, text, whole
from ragclinic.signals.readers.otlp_values import attributes_of
from ragclinic.signals.readers.reader import Origin, ReadLog
from ragclinic.signals.records import Sample

_DELTA = frozenset({1, "1", "AGGREGATION_TEMPORALITY_DELTA"})
_NO_VALUE = 1
_RESOURCE_LABELS = {"service.name": "job", "service.instance.id": "instance"}
_MAX_SCALE = 20
Labels = dict[str, str]
Row = tuple[str, float, Labels]


class MetricReading:
    """Turns the metrics of one source into samples; remembers the sums of those that report deltas."""

    def __init__(self, origin: Origin, log: ReadLog) -> None:
        self._origin, self._log = origin, log
        self._sums: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}

    def samples(self, metric: Any, resource: Mapping[str, Any], line: int) -> Iterator[Sample]:
        """The samples of one metric in OTLP JSON; a row is a data point."""
        where = self._origin.at(line)
        try:
            name, kind, data = _kind_of(obj(metric, "metric"))
        except ValueError as error:
            self._log.reject("unreadable metric", where, str(error))
            return
        shared = {label: str(resource[key]) for key, label in _RESOURCE_LABELS.items() if key in resource}
        delta = data.get("aggregationTemporality", data.get("aggregation_temporality")) in _DELTA
        for point in items(data.get("dataPoints", data.get("data_points"))):
            try:
                time_ns, rows = _rows(name, kind, obj(point, "data point"), shared)
            except (ValueError, TypeError, OverflowError, RecursionError) as error:
                self._log.reject("unreadable data point", where, f"{name}: {error}")
                continue
            if not all(math.isfinite(value) for _, value, _ in rows):
                self._log.reject("value not finite", where, f"{name} holds nan or infinity; expected numbers")
                continue
            self._log.keep() if rows else self._log.skip()
            yield from (Sample(time_ns, n, self._summed(n, v, ls) if delta else v, ls) for n, v, ls in rows)

    def _summed(self, name: str, value: float, labels: Labels) -> float:
        series = (name, tuple(sorted(labels.items())))
        self._sums[series] = self._sums.get(series, 0.0) + value
        return self._sums[series]


def _kind_of(metric: Mapping[str, Any]) -> tuple[str, str, Mapping[str, Any]]:
    name = text(metric, "name")
    for kind in ("gauge", "sum", "histogram", "exponentialHistogram", "exponential_histogram", "summary"):
        if name and isinstance(metric.get(kind), Mapping):
            return name, kind.replace("_h", "H"), metric[kind]
    raise ValueError("no name or no data; expected gauge, sum, histogram, exponentialHistogram or summary")


def _rows(name: str, kind: str, point: Mapping[str, Any], shared: Labels) -> tuple[int, list[Row]]:
    time_ns = whole(point, "timeUnixNano", "time_unix_nano")
    if not 0 < time_ns < 2**63:
        raise ValueError(f"time {time_ns}; expected nanoseconds since 1970")
    if whole(point, "flags") & _NO_VALUE:
        return time_ns, []
    labels = {**shared, **{key: _label(value) for key, value in attributes_of(point.get("attributes")).items()}}
    match kind:
        case "histogram":
            return time_ns, _histogram(name, point, labels)
        case "exponentialHistogram":
            return time_ns, _exponential(name, point, labels)
        case "summary":
            return time_ns, _summary(name, point, labels)
        case _:
            told = next((point[k] for k in ("asDouble", "asInt", "as_double", "as_int") if k in point), None)
            if told is None:
                raise ValueError("no value; expected asDouble or asInt")
            return time_ns, [(name, float(told), labels)]


def _label(value: Any) -> str:
    return value if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)


def _histogram(name: str, point: Mapping[str, Any], labels: Labels) -> list[Row]:
    edges = [float(e) for e in items(point.get("explicitBounds", point.get("explicit_bounds")))]
    counts = [float(c) for c in items(point.get("bucketCounts", point.get("bucket_counts")))]
    if counts and len(counts) != len(edges) + 1:
        raise ValueError(f"{len(counts)} counts for {len(edges)} bounds; expected one more than bounds")
    return _buckets(name, [*edges, math.inf], counts, labels) + _totals(name, point, labels)


def _exponential(name: str, point: Mapping[str, Any], labels: Labels) -> list[Row]:
    """Buckets with the edges 2^(2^-scale * (offset + i + 1)), those below zero counted into the zero bucket."""
    scale = whole(point, "scale")
    if not -_MAX_SCALE <= scale <= _MAX_SCALE:
        raise ValueError(f"scale {scale}; expected -{_MAX_SCALE} to {_MAX_SCALE}")
    positive = obj(point.get("positive") or {}, "positive")
    negative = obj(point.get("negative") or {}, "negative")
    counts = [float(c) for c in items(positive.get("bucketCounts", positive.get("bucket_counts")))]
    below = sum(float(c) for c in items(negative.get("bucketCounts", negative.get("bucket_counts"))))
    offset, step = whole(positive, "offset"), 2.0**-scale
    edges = [2.0 ** (step * (offset + i + 1)) for i in range(len(counts))]
    zero = below + whole(point, "zeroCount", "zero_count")
    first = 2.0 ** (step * offset)
    return _buckets(name, [first, *edges, math.inf], [zero, *counts, 0.0], labels) + _totals(name, point, labels)


def _summary(name: str, point: Mapping[str, Any], labels: Labels) -> list[Row]:
    told = [obj(q, "quantile") for q in items(point.get("quantileValues", point.get("quantile_values")))]
    rows = [(name, float(q.get("value", 0.0)), {**labels, "quantile": str(q.get("quantile", 0))}) for q in told]
    return rows + _totals(name, point, labels)


def _buckets(name: str, edges: list[float], counts: list[float], labels: Labels) -> list[Row]:
    total, rows = 0.0, []
    for edge, count in zip(edges, counts, strict=False):
        total += count
        rows.append((f"{name}_bucket", total, {**labels, "le": "+Inf" if edge == math.inf else f"{edge:g}"}))
    return rows


def _totals(name: str, point: Mapping[str, Any], labels: Labels) -> list[Row]:
    rows: list[Row] = [(f"{name}_count", float(whole(point, "count")), labels)]
    total = number(point.get("sum"))
    return rows if total is None else [*rows, (f"{name}_sum", total, labels)]
