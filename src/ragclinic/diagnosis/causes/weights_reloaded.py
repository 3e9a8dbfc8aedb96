"""The model is loaded again between requests.

How it becomes seconds: some or all requests wait for gigabytes to be read before their first token.
What deceives:
- The first request is slow and later ones are not: a start is no fault, so a first load does not count. Nor is a
  slow first request without a load (`cold-kernels`, a cold index): asked of the load stage, or of the memory.
- Prefill that takes long: a load hidden in it shows as memory that falls to idle and comes back, more than once.
Variants: `keep-alive` (it goes after a while without requests, or after each), `evicted` (another model takes its
place), `option-changed` (the window size changes from call to call, and the server starts anew).
It prefers to miss a single reload to naming a deployment.
"""

from typing import NamedTuple

import numpy as np

from ragclinic.diagnosis.confidence import from_few, graded
from ragclinic.diagnosis.loads import Loads, loads
from ragclinic.diagnosis.measuring import bounded
from ragclinic.diagnosis.near import answered, near_p95
from ragclinic.diagnosis.needs import LOADS
from ragclinic.diagnosis.remedies import KEEP_LOADED
from ragclinic.diagnosis.say import Sentence, say
from ragclinic.diagnosis.types import Answer, Budget, Cause, Found, Interval, Missing, NotFound, Remedy
from ragclinic.signals.seen import Seen

MIN_RELOADS = 2
"""Loads after the first one."""
RELOADED = 0.02
"""Share of requests (0..1) that load; P95 feels it from 0.05 on."""
SURELY_RELOADED = 0.2
EACH = 0.8
"""Share of requests above which the model is simply not kept."""
IDLE_FACTOR = 3.0
"""Pause before a load over the pause before other requests, from which on the pause is the reason."""
SHORT_PAUSE_S = 0.1
"""Pauses below this are none: three times nothing is nothing."""
CHANGED = 0.5
"""Share of loads at which the window size differs from the request before."""

NEEDS = (LOADS,)


class Measured(NamedTuple):
    """Loads among the requests, and what they took around P95. `by_memory`: seen as memory that fell and rose."""

    requests: int
    reloads: int
    load_ms: float
    load_share: float
    pause_before_load_s: float | None
    pause_otherwise_s: float | None
    window_changed_share: float
    by_memory: bool


def measure(seen: Seen) -> Measured | Missing:
    """The loads after the first, by their stages or by the memory, and their time."""
    requests = answered(seen)
    near = near_p95(requests)
    found = loads(seen)
    if near is None or found is None:
        return Missing(NEEDS)
    return Measured(
        requests=len(requests),
        reloads=len(found.after_first),
        load_ms=float(np.median(list(found.after_first.values()))) if found.after_first else 0.0,
        load_share=near.share(lambda r: found.after_first.get(r.id)),
        pause_before_load_s=_median([found.pause_s[i] for i in found.after_first if i in found.pause_s]),
        pause_otherwise_s=_median([s for i, s in found.pause_s.items() if i not in found.after_first]),
        window_changed_share=_window_changed(found),
        by_memory=found.by_memory,
    )


def decide(m: Measured) -> Answer:
    """Found where the model was loaded again at least twice, in more than a few requests."""
    reloaded = m.reloads / m.requests
    if m.reloads < MIN_RELOADS or reloaded < RELOADED:
        return NotFound(f"{m.reloads} of {m.requests} requests loaded the model again")
    how_en = "the memory fell and came back" if m.by_memory else "load stages"
    how_zh = "显存回落后又升起" if m.by_memory else "加载阶段"
    evidence: list[Sentence] = [
        say(
            "{reloads} of {requests} requests waited for the model to load again, {ms:,.0f} ms in the median "
            "(seen as: {how}).",
            "{requests} 个请求中有 {reloads} 个等待模型重新加载，中位数 {ms:,.0f} ms（依据：{how_zh}）。",
            reloads=m.reloads,
            requests=m.requests,
            ms=m.load_ms,
            how=how_en,
            how_zh=how_zh,
        )
    ]
    variant = _variant(m)
    if variant == "keep-alive" and m.pause_otherwise_s is not None and m.pause_before_load_s is not None:
        evidence.append(
            say(
                "Before a load no request came for {before:,.1f} s, before others for {otherwise:,.1f} s.",
                "加载之前空闲 {before:,.1f} s，其他请求之前空闲 {otherwise:,.1f} s（中位数）。",
                before=m.pause_before_load_s,
                otherwise=m.pause_otherwise_s,
            )
        )
    return Found(from_few(graded(reloaded, RELOADED, SURELY_RELOADED), m.requests), tuple(evidence), variant)


def share(m: Measured, budget: Budget) -> Interval:
    """The loads, as part of P95; without load stages they hide in others."""
    if m.by_memory:
        return Interval(m.load_share, 0.5 * m.load_share, m.load_share)
    return bounded(m.load_share, budget, ("load",))


def remedy(_m: Measured, variant: str | None) -> Remedy:
    """Keep it loaded; what stands in the way of that differs by variant."""
    why = {
        "evicted": say(
            "Keep the model loaded: give embedder and generator a server each, or memory for both.",
            "让模型常驻：嵌入模型和生成模型各用一个服务，或者留够两者的显存。",
        ),
        "option-changed": say(
            "Keep the model loaded: send the same window size with every call; another one starts it anew.",
            "让模型常驻：每次调用用同样的窗口大小，换一个大小就会重新启动。",
        ),
    }
    return Remedy(
        KEEP_LOADED,
        why.get(
            variant or "",
            say(
                "Keep the model loaded between requests (Ollama: keep_alive = -1).",
                "请求之间保持模型常驻（Ollama：keep_alive = -1）。",
            ),
        ),
    )


def _variant(m: Measured) -> str:
    if m.window_changed_share >= CHANGED:
        return "option-changed"
    if m.reloads >= EACH * (m.requests - 1):
        return "keep-alive"
    before, otherwise = m.pause_before_load_s, m.pause_otherwise_s
    if before is not None and otherwise is not None and before >= IDLE_FACTOR * max(SHORT_PAUSE_S, otherwise):
        return "keep-alive"
    return "evicted"


def _window_changed(found: Loads) -> float:
    return len(found.window_changed) / len(found.after_first) if found.after_first else 0.0


def _median(values: list[float]) -> float | None:
    return float(np.median(values)) if values else None


CAUSE = Cause(
    id="weights-reloaded",
    axis="memory",
    needs=NEEDS,
    leads_to=("queue-saturated",),
    measure=measure,
    decide=decide,
    share=share,
    remedy=remedy,
)
