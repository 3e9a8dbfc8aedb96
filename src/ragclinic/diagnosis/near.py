"""The requests around P95: which they are and how much each counts. Budget and causes all weigh by them.

A request counts by its rank: most at the 95th percentile, nothing below the 90th or above the 100th, linearly in
between. In few requests the reach grows until three count. The single request *at* P95 would be noise, and the
mean of all would describe requests that nobody complains about.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ragclinic.signals.seen import Request, Seen

P95 = 0.95
REACH = 0.05
"""Quantiles on either side of P95 at which a request stops counting."""
MAX_NEAR = 64
"""More requests add work and no certainty; of more, evenly spaced ones are taken."""

Measure = Callable[[Request], float | None]


def percentile(values: Sequence[float], quantile: float) -> float:
    """The quantile (0..1) of the values, linear between neighbours, as DuckDB's `quantile_cont` has it."""
    return float(np.quantile(np.asarray(values, dtype=float), quantile))


def answered(seen: Seen) -> tuple[Request, ...]:
    """The users' requests that did not fail, in order of arrival."""
    return tuple(r for r in seen.requests if r.kind == "user" and r.error is None)


@dataclass(frozen=True, slots=True)
class Near:
    """The requests around P95, with weights that sum to 1."""

    p95_ms: float
    requests: tuple[Request, ...]
    weights: tuple[float, ...]

    def mean(self, of: Measure) -> float | None:
        """The weighted mean over the requests for which `of` is known, or None where it is for none."""
        known = [(w, v) for r, w in zip(self.requests, self.weights, strict=True) if (v := of(r)) is not None]
        total = sum(w for w, _ in known)
        return sum(w * v for w, v in known) / total if total else None

    def known(self, of: Measure) -> float:
        """The weight (0..1) of the requests for which `of` is known."""
        return sum(w for r, w in zip(self.requests, self.weights, strict=True) if of(r) is not None)

    def stage_ms(self, *names: str) -> float | None:
        """Mean ms in the named stages; a request with other stages spent none. None where no stage was seen."""
        return self.mean(lambda r: (r.stage_ms(*names) or 0.0) if r.stages else None)

    def share(self, of_ms: Measure) -> float:
        """The mean of `of_ms` as a share (0..1) of the mean total; where it is unknown it counts nothing."""
        total = self.mean(lambda r: r.total_ms)
        return min(1.0, max(0.0, (self.mean(lambda r: of_ms(r) or 0.0) or 0.0) / total)) if total else 0.0


def near_p95(requests: Sequence[Request]) -> Near | None:
    """The requests around P95 of the total time, or None where there are none."""
    if not requests:
        return None
    ranked = sorted(requests, key=lambda r: (r.total_ms, r.arrival_ns, r.id))
    last = max(1, len(ranked) - 1)
    # Two ranks to each side stay within reach, however few requests there are.
    reach = max(REACH, 2 / last)
    counting = [
        (request, weight)
        for rank, request in enumerate(ranked)
        if (weight := 1 - abs(rank / last - P95) / reach) > 0
    ]
    step = -(-len(counting) // MAX_NEAR)
    counting = counting[step // 2 :: step]
    total = sum(weight for _, weight in counting)
    return Near(
        p95_ms=percentile([r.total_ms for r in ranked], P95),
        requests=tuple(request for request, _ in counting),
        weights=tuple(weight / total for _, weight in counting),
    )
