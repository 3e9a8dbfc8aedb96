"""Reading long prompts takes the time, and the prompts are needed.

How it becomes seconds: prefill grows with the computed tokens, and faster than they do.
What deceives:
- A context fault (redundant, overlapping, idle or overfull context, an unstable prefix) makes prefill long too;
  then the fault is named and this is not. Without the prompt's chunks it cannot be told whether it is needed.
- Preempted requests are read again: their prefill is long for their *computed tokens*. Where the slow requests
  take far more for each token than the others, the length of the prompt is not the reason.
It prefers *cannot tell* to calling a prompt needed that nobody looked into.
"""

from typing import NamedTuple

from ragclinic.diagnosis.confidence import from_few, graded
from ragclinic.diagnosis.latency_model import fit_latency
from ragclinic.diagnosis.measuring import Need, around, bounded
from ragclinic.diagnosis.near import answered
from ragclinic.diagnosis.needs import CHUNKS, GENERATION, PROMPT_TOKENS
from ragclinic.diagnosis.repetition import repetition
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
from ragclinic.signals.seen import Request, Seen

BOUND = 0.5
"""Share of P95 (0..1) in prefill."""
SURELY_BOUND = 0.8
SLOW_FACTOR = 2.5
"""Prefill of the slow requests over what the others' pace makes of their tokens."""
TAKEN_AWAY = 0.25
TAKEN_AWAY_AT_MOST = 0.5
"""Shares of the prefill that remedies commonly take: a quarter by reuse and chunking, half by hardware twice as
fast. The lower one counts: needed work must not stand above a fault that a setting cures."""

NEEDS = (GENERATION, PROMPT_TOKENS, CHUNKS)


class Measured(NamedTuple):
    """Means over the requests around P95. `slow_factor` is their prefill over what the fitted pace makes of it."""

    prefill_share: float
    prefill_ms: float
    computed_tokens: float
    prompt_tokens: float
    slow_factor: float
    requests: int


def measure(seen: Seen) -> Measured | Missing:
    """Prefill around P95, and whether its pace is the usual one."""
    near = around(
        seen,
        Need(GENERATION, lambda r: r.stage_ms("prefill")),
        Need(PROMPT_TOKENS, lambda r: r.prompt_tokens),
        Need(CHUNKS, _looked_into),
    )
    model = fit_latency(seen)
    if isinstance(near, Missing) or model is None:
        return near if isinstance(near, Missing) else Missing((GENERATION,))

    def slow_factor(request: Request) -> float | None:
        ms = request.stage_ms("prefill")
        usual = model.prefill_ms(request.computed_tokens or 0, request.prompt_tokens)
        return ms / usual if ms is not None and usual > 0 else None

    return Measured(
        prefill_share=near.share(lambda r: r.stage_ms("prefill")),
        prefill_ms=near.stage_ms("prefill") or 0.0,
        computed_tokens=near.mean(lambda r: r.computed_tokens) or 0.0,
        prompt_tokens=near.mean(lambda r: r.prompt_tokens) or 0.0,
        slow_factor=near.mean(slow_factor) or 0.0,
        requests=len(answered(seen)),
    )


def decide(m: Measured) -> Answer:
    """Found where prefill takes half of P95 at the usual pace."""
    if m.prefill_share < BOUND:
        return NotFound(f"prefill takes {m.prefill_share:.0%} of P95")
    if m.slow_factor >= SLOW_FACTOR:
        return CannotTell(
            because=say(
                "the slow requests' prefill takes {factor:.1f} times what their tokens usually take: not the "
                "length of the prompt (preemption, throttling, contention)",
                "慢请求的 prefill 是同样 token 数平时用时的 {factor:.1f} 倍："
                "原因不在提示词长度（抢占、降频、争用）",
                factor=m.slow_factor,
            )
        )
    evidence = say(
        "Around P95 prefill takes {ms:,.0f} ms ({share:.0%}) for {computed:,.0f} computed of {prompt:,.0f} prompt "
        "tokens, and no fault was found in the context.",
        "在 P95 附近，prefill 用了 {ms:,.0f} ms（{share:.0%}），"
        "提示词的 {prompt:,.0f} 个 token 中计算了 {computed:,.0f} 个，上下文没有发现毛病。",
        ms=m.prefill_ms,
        share=m.prefill_share,
        computed=m.computed_tokens,
        prompt=m.prompt_tokens,
    )
    return Found(from_few(graded(m.prefill_share, BOUND, SURELY_BOUND), m.requests), (evidence,))


def share(m: Measured, budget: Budget) -> Interval:
    """What its remedies commonly take away of the prefill, as part of P95."""
    low = bounded(TAKEN_AWAY * m.prefill_share, budget, ("prefill",))
    return Interval(low.value, low.low, bounded(TAKEN_AWAY_AT_MOST * m.prefill_share, budget, ("prefill",)).value)


def remedy(_m: Measured, _variant: str | None) -> Remedy:
    """Nothing that a setting of the engine could do without a loss."""
    return Remedy(
        {},
        say(
            "The prompts are needed: faster hardware or a smaller model for prefill, chunked prefill beside other "
            "requests, or prefixes computed ahead and reused.",
            "提示词是必要的：为 prefill 换更快的硬件或更小的模型，与其他请求并行时用分块 prefill，"
            "或者提前计算并复用前缀。",
        ),
    )


def _looked_into(request: Request) -> float | None:
    """1 where it is known what the context holds: its chunks were compared, or there is at most one."""
    context = [p for p in request.parts if p.role == "context"]
    if request.parts and len(context) < 2:
        return 1.0
    return None if repetition(request) is None else 1.0


CAUSE = Cause(
    id="prefill-bound",
    axis="capacity",
    needs=NEEDS,
    leads_to=(),
    measure=measure,
    decide=decide,
    share=share,
    remedy=remedy,
    unless=("context-overfull", "context-redundant", "overlap-waste", "tail-chunks-idle", "prefix-unstable"),
)
