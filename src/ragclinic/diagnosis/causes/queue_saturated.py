"""Requests wait for the LLM server because more arrive than it serves, or because it serves one at a time.

How it becomes seconds: the work of a request stays the same and its waiting grows without bound.
What deceives:
- A concurrency set to one: the hardware idles while requests queue. Variant `concurrency`; scaling out is the
  wrong remedy. Otherwise `overload`.
- Waiting for KV blocks (`kv-cache-exhausted`): with the KV cache full meanwhile, it cannot be told from here.
- Waiting with nothing running (`grammar-compile`, a load): then it is no queue of requests.
- `event-loop-blocked`: waiting *before* the server. It shows as a gap before the first stage, not as queue time.
- A single burst: P95 may fall into it, and yet most requests never wait. Then it is not named.
It prefers to miss short peaks.
"""

from typing import NamedTuple

from ragclinic.diagnosis.confidence import from_few, graded
from ragclinic.diagnosis.measuring import around, bounded
from ragclinic.diagnosis.near import answered
from ragclinic.diagnosis.needs import QUEUE
from ragclinic.diagnosis.queueing import busy_share, most_running, most_waiting
from ragclinic.diagnosis.say import say
from ragclinic.diagnosis.types import (
    Answer,
    Budget,
    CannotTell,
    Cause,
    Found,
    Interval,
    Missing,
    NotFound,
    Remedy,
)
from ragclinic.signals.seen import MemorySample, Request, Seen

SATURATED = 0.3
"""Share of P95 (0..1) in the queue."""
SURELY_SATURATED = 0.7
WAITS_MS = 100.0
"""Queue time of a request that waited; less is the way to the server."""
STEADILY = 0.2
"""Share of all requests that waited: P95 alone may be one burst."""
BUSY = 0.5
"""Share of the waiting (0..1) during which the server ran something."""
KV_FULL = 0.95
"""Share of the KV cache in use, from the published table of causes."""
MOST_SLOTS = 4
"""Slots prescribed at most at once: each more slows the others down; measure before going on."""

NEEDS = (QUEUE,)


class Measured(NamedTuple):
    """Waiting around P95 and among all requests. `running` is the most that ran at once, or the server's slots."""

    queue_share: float
    queue_ms: float
    waited_share: float
    busy_share: float
    running: int
    waiting: int
    kv_used: float | None
    requests: int


def measure(seen: Seen) -> Measured | Missing:
    """Queue time, how many wait and run, and whether the KV cache was full meanwhile."""
    near = around(seen)
    requests = answered(seen)
    if isinstance(near, Missing) or not any(r.stage_ms("queue") is not None for r in requests):
        return Missing(NEEDS)
    waited = [r for r in requests if (r.stage_ms("queue") or 0.0) >= WAITS_MS]
    return Measured(
        queue_share=near.share(lambda r: r.stage_ms("queue")),
        queue_ms=near.stage_ms("queue") or 0.0,
        waited_share=len(waited) / len(requests),
        busy_share=busy_share(waited, requests),
        running=seen.slots or most_running(requests),
        waiting=most_waiting(requests),
        kv_used=_kv_used(waited, seen.memory),
        requests=len(requests),
    )


def decide(m: Measured) -> Answer:
    """Found where waiting takes a good part of P95, many wait, and the server is busy meanwhile."""
    if m.queue_share < SATURATED:
        return NotFound(f"the queue takes {m.queue_share:.0%} of P95")
    if m.waited_share < STEADILY:
        return NotFound(f"{m.waited_share:.0%} of the requests waited: a burst, not a steady queue")
    if m.busy_share < BUSY:
        return CannotTell(
            because=say(
                "the server ran something during {busy:.0%} of the waiting: no queue of requests "
                "(grammar-compile, a load)",
                "排队期间服务只有 {busy:.0%} 的时间在运行请求：不是请求排队（grammar-compile、加载模型）",
                busy=m.busy_share,
            )
        )
    if m.kv_used is not None and m.kv_used >= KV_FULL:
        return CannotTell(
            because=say(
                "the KV cache was {kv:.0%} full meanwhile (kv-cache-exhausted)",
                "排队期间 KV 缓存占用 {kv:.0%}（kv-cache-exhausted）",
                kv=m.kv_used,
            )
        )
    evidence = say(
        "Around P95 a request waits {ms:,.0f} ms ({share:.0%}) for the LLM server; {waited:.0%} of all requests "
        "waited, up to {waiting} at once, while at most {running} ran.",
        "在 P95 附近，请求排队等待 LLM 服务 {ms:,.0f} ms（{share:.0%}）；"
        "全部请求中有 {waited:.0%} 排过队，最多同时 {waiting} 个，而同时运行的最多 {running} 个。",
        ms=m.queue_ms,
        share=m.queue_share,
        waited=m.waited_share,
        waiting=m.waiting,
        running=m.running,
    )
    variant = "concurrency" if m.running <= 1 else "overload"
    return Found(from_few(graded(m.queue_share, SATURATED, SURELY_SATURATED), m.requests), (evidence,), variant)


def share(m: Measured, budget: Budget) -> Interval:
    """The waiting, as part of P95."""
    return bounded(m.queue_share, budget, ("queue",))


def remedy(m: Measured, variant: str | None) -> Remedy:
    """More slots where there was one; where the server is full, what no setting of one machine can do."""
    if variant == "concurrency":
        return Remedy(
            {"llm.slots": min(MOST_SLOTS, max(2, m.waiting + 1))},
            say(
                "The server runs one request at a time: let it run several, and watch the time per token. Do not "
                "scale out before.",
                "服务一次只跑一个请求：先调大并发数并观察每个 token 的时间，不要急着扩容。",
            ),
        )
    return Remedy(
        {},
        say(
            "The server is full: less work for each request first, then more replicas, and a bound on the queue.",
            "服务已满：先减少每个请求的工作量，再增加副本，并给队列设上限。",
        ),
    )


def _kv_used(waited: list[Request], memory: tuple[MemorySample, ...]) -> float | None:
    """Mean share of the KV cache in use while requests waited, or None where it was not sampled then."""
    spans = [(r.arrival_ns, r.arrival_ns + int(r.total_ms * 1e6)) for r in waited]
    if not spans:
        return None
    begin, end = min(s for s, _ in spans), max(e for _, e in spans)
    shares = [
        s.kv_used_tokens / s.kv_total_tokens
        for s in memory
        if s.kv_used_tokens is not None and s.kv_total_tokens and begin <= s.time_ns <= end
    ]
    return sum(shares) / len(shares) if shares else None


CAUSE = Cause(
    id="queue-saturated",
    axis="capacity",
    needs=NEEDS,
    leads_to=(),
    measure=measure,
    decide=decide,
    share=share,
    remedy=remedy,
)
