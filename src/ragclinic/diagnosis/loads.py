"""When the model was loaded: by load stages; where no tracer tells, by memory that falls to idle and rises."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ragclinic.diagnosis.near import answered
from ragclinic.signals.seen import MemorySample, Request, Seen

MIN_LOAD_MS = 100.0
"""Shorter is asking whether it is loaded, not loading."""
FALLEN = 0.7
"""Used memory over its usual high, below which the model is taken to be out."""
BACK = 0.9
HIGH_QUANTILE = 0.9
MIN_SAMPLES = 8


class Loads(NamedTuple):
    """Requests that waited for a load after the first one, with the ms of it, by id.

    `pause_s` is how long no request ran before each one; `window_changed` holds loads whose window size differs
    from the request before.
    """

    after_first: Mapping[str, float]
    pause_s: Mapping[str, float]
    window_changed: frozenset[str]
    by_memory: bool


def loads(seen: Seen) -> Loads | None:
    """The loads that were seen, or None where neither stages nor memory tell.

    Our engine records a load stage whenever it loads: without one it did not. Of others the memory is asked.
    """
    requests = answered(seen)
    by_stage = {r.id: ms for r in requests if (ms := r.stage_ms("load")) is not None and ms >= MIN_LOAD_MS}
    if by_stage or "llm.keep_loaded" in seen.settings:
        return _loads(requests, by_stage, by_memory=False)
    used = [(s.time_ns, s.used_bytes) for s in seen.memory if s.used_bytes is not None]
    if len(used) < MIN_SAMPLES:
        return None
    return _loads(requests, _by_memory(requests, seen.memory), by_memory=True)


def _loads(requests: Sequence[Request], found: Mapping[str, float], by_memory: bool) -> Loads:
    first = requests[0].id if requests else None
    pauses: dict[str, float] = {}
    changed: set[str] = set()
    busy_until_ns = 0.0
    for before, request in zip((None, *requests), requests, strict=False):
        if before is not None:
            busy_until_ns = max(busy_until_ns, before.arrival_ns + before.total_ms * 1e6)
            pauses[request.id] = max(0.0, (request.arrival_ns - busy_until_ns) / 1e9)
            if request.id in found and before.window_tokens != request.window_tokens:
                changed.add(request.id)
    return Loads({i: ms for i, ms in found.items() if i != first}, pauses, frozenset(changed), by_memory)


def _by_memory(requests: Sequence[Request], memory: Sequence[MemorySample]) -> dict[str, float]:
    """Requests that ran while the memory was coming back, with what they took more than the others' median."""
    used = [(s.time_ns, s.used_bytes) for s in memory if s.used_bytes is not None]
    high = float(np.quantile([b for _, b in used], HIGH_QUANTILE))
    came_back: list[int] = []
    out = False
    for time_ns, used_bytes in used:
        if used_bytes < FALLEN * high:
            out = True
        elif out and used_bytes >= BACK * high:
            came_back.append(time_ns)
            out = False
    during = {
        r.id: r for r in requests for t in came_back if r.arrival_ns <= t <= r.arrival_ns + int(r.total_ms * 1e6)
    }
    others = [r.total_ms for r in requests if r.id not in during]
    usual = float(np.median(others)) if others else 0.0
    return {i: r.total_ms - usual for i, r in during.items() if r.total_ms - usual >= MIN_LOAD_MS}
