"""The two axes of each request: memory pressure while it ran, and redundancy of its context."""

import random
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ragclinic.diagnosis.near import Near
from ragclinic.diagnosis.repetition import repetition
from ragclinic.diagnosis.types import Axes
from ragclinic.signals.seen import MemorySample, Request

SMOOTHED_OVER = 8
"""Samples of memory that one smoothed value is the mean of: itself and those before it."""
NEAREST_GAPS = 2.0
"""A request between two samples takes the nearest one within so many sampling intervals."""
MAX_SAMPLED = 112
"""Requests whose chunks are compared; of more, those around P95 and a random rest."""
SEED = 20261201


class RequestAxes(NamedTuple):
    """One request on the plane: both axes 0..1 or None, and the seconds it took."""

    request_id: str
    memory_pressure: float | None
    context_redundancy: float | None
    seconds: float


def sampled(requests: Sequence[Request], near: Near) -> tuple[Request, ...]:
    """The requests whose chunks are compared, in order of arrival: all, or those around P95 and a random rest."""
    if len(requests) <= MAX_SAMPLED:
        return tuple(requests)
    chosen = {r.id for r in near.requests}
    rest = [r.id for r in requests if r.id not in chosen]
    chosen.update(random.Random(SEED).sample(rest, min(len(rest), MAX_SAMPLED - len(chosen))))  # noqa: S311
    return tuple(r for r in requests if r.id in chosen)


def request_axes(requests: Sequence[Request], memory: Sequence[MemorySample]) -> tuple[RequestAxes, ...]:
    """Both axes of each request."""
    pressures = memory_pressure(requests, memory)
    return tuple(
        RequestAxes(
            request_id=r.id,
            memory_pressure=pressures.get(r.id),
            context_redundancy=found.redundancy if (found := repetition(r)) else None,
            seconds=r.total_ms / 1000,
        )
        for r in requests
    )


def axes(points: Sequence[RequestAxes]) -> Axes:
    """The means over the requests for which each axis is known."""
    memory = [p.memory_pressure for p in points if p.memory_pressure is not None]
    redundancy = [p.context_redundancy for p in points if p.context_redundancy is not None]
    return Axes(
        memory_pressure=sum(memory) / len(memory) if memory else None,
        context_redundancy=sum(redundancy) / len(redundancy) if redundancy else None,
    )


def memory_pressure(requests: Sequence[Request], memory: Sequence[MemorySample]) -> Mapping[str, float]:
    """Mean smoothed memory pressure (0..1) while each request ran, by id; the nearest sample for a short one."""
    samples = [(s.time_ns, s.pressure) for s in memory if s.pressure is not None]
    if not samples:
        return {}
    times = np.array([t for t, _ in samples], dtype=np.int64)
    sums = np.concatenate([[0.0], np.cumsum(smoothed([p for _, p in samples]))])
    interval = float(np.median(np.diff(times))) if len(times) > 1 else float("inf")
    found: dict[str, float] = {}
    for request in requests:
        end_ns = request.arrival_ns + int(request.total_ms * 1e6)
        first, last = np.searchsorted(times, [request.arrival_ns, end_ns])
        if last > first:
            found[request.id] = float((sums[last] - sums[first]) / (last - first))
            continue
        nearest = min(
            (i for i in (int(first) - 1, int(first)) if 0 <= i < len(times)),
            key=lambda i: abs(int(times[i]) - request.arrival_ns),
        )
        if abs(int(times[nearest]) - request.arrival_ns) <= NEAREST_GAPS * interval:
            found[request.id] = float(sums[nearest + 1] - sums[nearest])
    return found


def smoothed(values: Sequence[float]) -> list[float]:
    """Each value replaced by the mean of it and up to seven before it.

    >>> smoothed([0.0, 1.0, 1.0])
    [0.0, 0.5, 0.6666666666666666]
    """
    sums = np.concatenate([[0.0], np.cumsum(values)])
    ends = np.arange(1, len(values) + 1)
    starts = np.maximum(0, ends - SMOOTHED_OVER)
    return [float(v) for v in (sums[ends] - sums[starts]) / (ends - starts)]
