"""Percentiles out of cumulative histogram buckets, with the bucket itself as the bounds.

A bucket says only that a value lies between two edges. Inside it the percentile is interpolated as Prometheus
does; how far off that may be is the width of the bucket, and it is part of the answer: vLLM has edges at 5 and
10 s, so an objective of 8 s lies inside one, and whether it is met may be unknowable from the histogram alone.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from ragclinic.signals.records import Sample

BUCKET = "_bucket"
EDGE = "le"


class Estimate(NamedTuple):
    """A value and the interval it lies in; `high` is infinite in the last bucket, the value then its low edge."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Histogram:
    """How many values lay at or below each edge, the last edge being infinite. `counts` never fall."""

    edges: tuple[float, ...]
    counts: tuple[float, ...]

    @property
    def total(self) -> float:
        """How many values were seen."""
        return self.counts[-1] if self.counts else 0.0

    def percentile(self, share: float) -> Estimate | None:
        """The value below which `share` (0..1) of all values lie, or None where nothing was seen."""
        if self.total <= 0:
            return None
        rank = share * self.total
        index = next(i for i, count in enumerate(self.counts) if count >= rank and count > 0)
        low, high, below = self._bucket(index)
        if math.isinf(high):
            return Estimate(low, low, high)
        inside = self.counts[index] - below
        return Estimate(low + (high - low) * max(0.0, rank - below) / inside if inside else high, low, high)

    def share_above(self, value: float) -> Estimate | None:
        """The share of values above `value`; the bounds put all of its bucket on one side, then on the other."""
        if self.total <= 0:
            return None
        index = next(i for i, edge in enumerate(self.edges) if edge >= value)
        low, high, below = self._bucket(index)
        at_most = self.counts[index]
        inside = 0.0 if math.isinf(high) else (at_most - below) * (value - low) / (high - low)
        under = at_most if high == value else below + inside
        least, most = (at_most, at_most) if high == value else (below, at_most)
        return Estimate(1 - under / self.total, 1 - most / self.total, 1 - least / self.total)

    def since(self, earlier: "Histogram") -> "Histogram":
        """What was added after `earlier`; all of this one where the server restarted or its buckets changed."""
        if earlier.edges != self.edges or any(a < b for a, b in zip(self.counts, earlier.counts, strict=True)):
            return self
        return Histogram(self.edges, tuple(a - b for a, b in zip(self.counts, earlier.counts, strict=True)))

    def plus(self, other: "Histogram") -> "Histogram":
        """Both together; edges that only one has are left out, so that no value is moved."""
        if other.edges == self.edges:
            return Histogram(self.edges, tuple(a + b for a, b in zip(self.counts, other.counts, strict=True)))
        mine, theirs = (
            dict(zip(self.edges, self.counts, strict=True)),
            dict(zip(other.edges, other.counts, strict=True)),
        )
        shared = tuple(edge for edge in self.edges if edge in theirs)
        return Histogram(shared, tuple(mine[edge] + theirs[edge] for edge in shared))

    def _bucket(self, index: int) -> tuple[float, float, float]:
        """Lower edge, upper edge and how many values lie below the bucket."""
        high = self.edges[index]
        if index == 0:
            return (0.0 if high > 0 else high), high, 0.0
        return self.edges[index - 1], high, self.counts[index - 1]


def histogram(buckets: Iterable[tuple[float, float]]) -> Histogram | None:
    """A histogram of (edge, count at or below it); None where nothing usable is there.

    Without an infinite edge the last one stands for it. A count that falls (a scrape torn between two writes) is
    raised to the one before.
    """
    found = sorted(
        {edge: count for edge, count in buckets if not math.isnan(edge) and math.isfinite(count)}.items()
    )
    if not found:
        return None
    if not math.isinf(found[-1][0]):
        found.append((math.inf, found[-1][1]))
    counts: list[float] = []
    for _, count in found:
        counts.append(max(count, counts[-1] if counts else 0.0))
    return Histogram(tuple(edge for edge, _ in found), tuple(counts))


def over(samples: Iterable[Sample], family: str, skip_labels: Sequence[str] = ()) -> Histogram | None:
    """The values a family of histograms gathered between its first and its last sample, all its series together.

    `samples` are those of one or more scrapes under `family` + `_bucket` with an `le` label. From a single scrape
    comes what was gathered since the server started. Restarts are told by falling counts.
    """
    scrapes: dict[tuple[tuple[str, str], ...], dict[int, list[tuple[float, float]]]] = {}
    for sample in samples:
        if sample.name == family + BUCKET and EDGE in sample.labels:
            series = tuple(sorted((k, v) for k, v in sample.labels.items() if k != EDGE and k not in skip_labels))
            edge = _edge(sample.labels[EDGE])
            scrapes.setdefault(series, {}).setdefault(sample.time_ns, []).append((edge, sample.value))
    gathered = [found for moments in scrapes.values() if (found := _gathered(moments)) is not None]
    return None if not gathered else _together(gathered)


def _gathered(moments: dict[int, list[tuple[float, float]]]) -> Histogram | None:
    seen = [h for time_ns in sorted(moments) if (h := histogram(moments[time_ns])) is not None]
    if len(seen) < 2:
        return seen[0] if seen else None
    return _together([later.since(earlier) for earlier, later in pairwise(seen)])


def _together(parts: Sequence[Histogram]) -> Histogram:
    first, *rest = parts
    for part in rest:
        first = first.plus(part)
    return first


def _edge(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
