"""What requests would wait for a server with so many slots: first come, first served, played through in order."""

import bisect
import heapq
from collections.abc import Sequence
from typing import NamedTuple

from ragclinic.signals.seen import Request, Seen

SERVICE = ("load", "prefill", "decode", "generate")


class Job(NamedTuple):
    """One request on its way through the server, in ms.

    It arrives at `arrival_ms`, or `think_ms` after job `follows` is done: a user asks the next question of a
    session after reading the answer, so a faster server is asked sooner. A job without service waits for nothing.
    """

    arrival_ms: float
    before_ms: float
    service_ms: float
    after_ms: float
    follows: int | None = None
    think_ms: float = 0.0


def waits(jobs: Sequence[Job], slots: int) -> list[float]:
    """The ms that each job waits for a slot; `follows` must name an earlier job, by its index."""
    followers: dict[int, list[int]] = {}
    coming: list[tuple[float, int]] = []
    for index, job in enumerate(jobs):
        if job.follows is None:
            coming.append((job.arrival_ms + job.before_ms, index))
        else:
            followers.setdefault(job.follows, []).append(index)
    heapq.heapify(coming)
    free = [0.0] * slots
    waited = [0.0] * len(jobs)
    while coming:
        at_server, index = heapq.heappop(coming)
        job = jobs[index]
        start = at_server
        if job.service_ms > 0:
            start = max(at_server, heapq.heappop(free))
            heapq.heappush(free, start + job.service_ms)
        waited[index] = start - at_server
        done = start + job.service_ms + job.after_ms
        for next_index in followers.get(index, ()):
            follower = jobs[next_index]
            heapq.heappush(coming, (done + follower.think_ms + follower.before_ms, next_index))
    return waited


def slots_of(seen: Seen) -> int:
    """How many requests the server runs at once: as it says, else the most that were seen running together."""
    return seen.slots or max(1, most_running(seen.requests))


def most_running(requests: Sequence[Request]) -> int:
    """The most requests that were in prefill or decode at the same moment; 0 where no such stage was seen."""
    return _peak([_span(r, SERVICE) for r in requests])


def most_waiting(requests: Sequence[Request]) -> int:
    """The most requests that were in the queue at the same moment."""
    return _peak([_span(r, ("queue",)) for r in requests])


def busy_share(waiting: Sequence[Request], requests: Sequence[Request]) -> float:
    """Share (0..1) of the waiting requests' queue time during which some request ran; 0 where nobody waited."""
    running = sorted(span for r in requests if (span := _span(r, SERVICE)) is not None)
    merged: list[tuple[float, float]] = []
    for start, end in running:
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    queued = [span for r in waiting if (span := _span(r, ("queue",))) is not None]
    total = sum(end - start for start, end in queued)
    starts = [start for start, _ in merged]
    busy = 0.0
    for start, end in queued:
        for a, b in merged[max(0, bisect.bisect_right(starts, start) - 1) :]:
            if a >= end:
                break
            busy += max(0.0, min(b, end) - max(a, start))
    return busy / total if total else 0.0


def _span(request: Request, names: tuple[str, ...]) -> tuple[float, float] | None:
    """From the begin of the first to the end of the last of these stages, in ms since the epoch."""
    stages = [s for s in request.stages if s.name in names]
    zero = request.arrival_ns / 1e6
    return (zero + stages[0].start_ms, zero + stages[-1].end_ms) if stages else None


def _peak(spans: Sequence[tuple[float, float] | None]) -> int:
    edges = [edge for span in spans if span is not None for edge in ((span[0], 1), (span[1], -1))]
    now = most = 0
    for _, change in sorted(edges):  # at the same moment an end (-1) comes before a start
        now += change
        most = max(most, now)
    return most
