"""The same question is answered again and again at full cost.

How it becomes seconds: a repeat takes as long as the first asking, and in a queue makes all others wait as well.
What deceives:
- A repeat that the engine's own prefix cache makes fast leaves nothing for an answer cache to win: healthy.
- "And then?" is the same text and another question: what leans on the conversation is no repeat. Nor is what
  another tenant asked, nor what failed and was tried again (`retry-storm`).
- P95 falls less than the mean: the slowest of the rest are slow as before. The predicted P95 says by how much.
It prefers to miss rephrased questions to giving one question another's answer.
"""

from typing import NamedTuple

import numpy as np

from ragclinic.diagnosis.confidence import from_few, graded
from ragclinic.diagnosis.measuring import Need, around
from ragclinic.diagnosis.near import answered
from ragclinic.diagnosis.needs import QUESTIONS
from ragclinic.diagnosis.remedies import ANSWER_CACHE
from ragclinic.diagnosis.repeats import DEFAULT_TTL_S, repeats
from ragclinic.diagnosis.say import say
from ragclinic.diagnosis.types import Answer, Budget, Cause, Found, Interval, Missing, NotFound, Remedy
from ragclinic.signals.seen import Seen

REPEATED = 0.10
"""Share of requests (0..1) that ask again what was answered within the cache's time to live."""
SURELY_REPEATED = 0.4
FULL_COST = 0.3
"""Time of a repeat over that of its first asking: below, something caches already."""

NEEDS = (QUESTIONS,)


class Measured(NamedTuple):
    """Repeats among all requests. Shares are of time: of all requests, and of those around P95."""

    requests: int
    repeats: int
    cost_ratio: float
    most_asked: int
    all_share: float
    near_share: float


def measure(seen: Seen) -> Measured | Missing:
    """How many requests repeat a question, and the time that goes into answering it again."""
    near = around(seen, Need(QUESTIONS, lambda r: None if r.question_key is None else 1.0))
    if isinstance(near, Missing):
        return near
    requests = answered(seen)
    ttl_s = seen.settings.get("cache.ttl_s")
    found = repeats(requests, float(ttl_s) if isinstance(ttl_s, int | float) else DEFAULT_TTL_S)
    again = [r for r in requests if r.id in found and not r.answer_cached]
    times: dict[str, int] = {}
    for r in again:
        times[found[r.id].id] = times.get(found[r.id].id, 1) + 1
    ids = {r.id for r in again}
    total = sum(r.total_ms for r in requests)
    return Measured(
        requests=len(requests),
        repeats=len(again),
        cost_ratio=float(np.median([r.total_ms / max(1e-9, found[r.id].total_ms) for r in again]))
        if again
        else 0.0,
        most_asked=max(times.values(), default=1),
        all_share=sum(r.total_ms for r in again) / total if total else 0.0,
        near_share=near.share(lambda r: r.total_ms if r.id in ids else 0.0),
    )


def decide(m: Measured) -> Answer:
    """Found where one request in ten repeats a question and pays the full price."""
    repeated = m.repeats / m.requests
    if repeated < REPEATED:
        return NotFound(f"{m.repeats} of {m.requests} requests repeat a question")
    if m.cost_ratio < FULL_COST:
        return NotFound(f"a repeat takes {m.cost_ratio:.0%} of the first asking: something caches already")
    evidence = say(
        "{repeats} of {requests} requests ask what was answered before, one question {most} times, and take "
        "{cost:.0%} of the first asking's time.",
        "{requests} 个请求中有 {repeats} 个问的是已经答过的问题（同一问题最多 {most} 次），"
        "耗时是第一次的 {cost:.0%}。",
        repeats=m.repeats,
        requests=m.requests,
        most=m.most_asked,
        cost=m.cost_ratio,
    )
    return Found(from_few(graded(repeated, REPEATED, SURELY_REPEATED), m.requests), (evidence,))


def share(m: Measured, _budget: Budget) -> Interval:
    """The time of repeats, as part of all time: a repeat is as likely around P95 as anywhere."""
    return Interval(m.all_share, min(m.all_share, m.near_share), max(m.all_share, m.near_share))


def remedy(_m: Measured, _variant: str | None) -> Remedy:
    """Cache answers."""
    return Remedy(
        ANSWER_CACHE,
        say(
            "Cache answers by question, tenant, index and model; a new state of the index leaves old ones behind.",
            "按问题、租户、索引和模型缓存答案；索引更新后旧答案自然失效。",
        ),
    )


CAUSE = Cause(
    id="answer-recomputed",
    axis="pipeline",
    needs=NEEDS,
    leads_to=(),
    measure=measure,
    decide=decide,
    share=share,
    remedy=remedy,
)
