"""Writing long answers takes the time.

How it becomes seconds: each token of the answer is a pass over the model, one after the other.
What deceives:
- Slow tokens are not long answers: where the slow requests take far more for each token than the others, something
  else slows the decode (throttling, others' prefill, KV reads of long contexts), and this cannot tell which.
- `not-streaming`: the same seconds, which the user then waits instead of reading.
- Thinking tokens are written and not shown: far more output than answer. Variant `thinking`.
It prefers *cannot tell* to blaming the answers for slow tokens.
"""

from typing import NamedTuple

import numpy as np

from ragclinic.context.tokens import estimate_tokens
from ragclinic.diagnosis.confidence import from_few, graded
from ragclinic.diagnosis.measuring import Need, around, bounded
from ragclinic.diagnosis.near import answered
from ragclinic.diagnosis.needs import GENERATION, OUTPUT_TOKENS
from ragclinic.diagnosis.say import Sentence, say
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
"""Share of P95 (0..1) in decode."""
SURELY_BOUND = 0.8
SLOW_FACTOR = 2.0
"""Time per output token of the slow requests over the median of all."""
THINKING = 3.0
"""Output tokens over those of the answer that the user sees."""
TAKEN_AWAY = 0.25
TAKEN_AWAY_AT_MOST = 0.5
"""Shares of the decode that remedies commonly take: a quarter from shorter answers, half from two tokens a step by
speculation. The lower one counts: needed work must not stand above a fault that a setting cures."""

NEEDS = (GENERATION, OUTPUT_TOKENS)


class Measured(NamedTuple):
    """Means over the requests around P95; `answer_tokens` is estimated from the text, None where none was kept."""

    decode_share: float
    decode_ms: float
    output_tokens: float
    tpot_ms: float
    slow_factor: float
    answer_tokens: float | None
    requests: int


def measure(seen: Seen) -> Measured | Missing:
    """Decode around P95: how many tokens, and at what pace beside the others."""
    near = around(
        seen, Need(GENERATION, lambda r: r.stage_ms("decode")), Need(OUTPUT_TOKENS, lambda r: r.output_tokens)
    )
    if isinstance(near, Missing):
        return near
    requests = answered(seen)
    paces = [pace for r in requests if (pace := _tpot_ms(r)) is not None]
    tpot_ms = near.mean(_tpot_ms) or 0.0
    return Measured(
        decode_share=near.share(lambda r: r.stage_ms("decode")),
        decode_ms=near.stage_ms("decode") or 0.0,
        output_tokens=near.mean(lambda r: r.output_tokens) or 0.0,
        tpot_ms=tpot_ms,
        slow_factor=tpot_ms / float(np.median(paces)) if paces else 1.0,
        answer_tokens=near.mean(lambda r: None if r.answer is None else float(estimate_tokens(r.answer))),
        requests=len(requests),
    )


def decide(m: Measured) -> Answer:
    """Found where decode takes half of P95 at the usual time per token."""
    if m.decode_share < BOUND:
        return NotFound(f"decode takes {m.decode_share:.0%} of P95")
    if m.slow_factor >= SLOW_FACTOR:
        return CannotTell(
            because=say(
                "the slow requests take {factor:.1f} times the usual time per token: not the length of answers",
                "慢请求每个 token 的时间是平时的 {factor:.1f} 倍：是 token 慢，不是答案长",
                factor=m.slow_factor,
            )
        )
    evidence: list[Sentence] = [
        say(
            "Around P95 decode takes {ms:,.0f} ms ({share:.0%}): {tokens:,.0f} output tokens, {tpot:.1f} ms each.",
            "在 P95 附近，decode 用了 {ms:,.0f} ms（{share:.0%}）："
            "输出 {tokens:,.0f} 个 token，每个 {tpot:.1f} ms。",
            ms=m.decode_ms,
            share=m.decode_share,
            tokens=m.output_tokens,
            tpot=m.tpot_ms,
        )
    ]
    thinking = m.answer_tokens is not None and m.output_tokens >= THINKING * max(1.0, m.answer_tokens)
    if thinking:
        evidence.append(
            say(
                "The answer that the user sees has about {shown:,.0f} tokens: the others are thinking.",
                "用户看到的答案只有约 {shown:,.0f} 个 token，其余是思考内容。",
                shown=m.answer_tokens,
            )
        )
    confidence = from_few(graded(m.decode_share, BOUND, SURELY_BOUND), m.requests)
    return Found(confidence, tuple(evidence), "thinking" if thinking else "answer")


def share(m: Measured, budget: Budget) -> Interval:
    """What its remedies commonly take away of the decode, as part of P95."""
    low = bounded(TAKEN_AWAY * m.decode_share, budget, ("decode",))
    return Interval(low.value, low.low, bounded(TAKEN_AWAY_AT_MOST * m.decode_share, budget, ("decode",)).value)


def remedy(_m: Measured, variant: str | None) -> Remedy:
    """Said, not prescribed: a lower llm.max_tokens changes answers."""
    if variant == "thinking":
        return Remedy(
            {},
            say(
                "Switch thinking off or bound it (reasoning effort); it is most of what is written.",
                "关闭或限制思考（reasoning effort）：写出的大部分内容都是它。",
            ),
        )
    return Remedy(
        {},
        say(
            "Ask for shorter answers, or lower llm.max_tokens where they ramble; speculative decoding keeps them.",
            "要求更短的答案，或者在答案啰嗦时减小 llm.max_tokens；投机解码可以不改变答案。",
        ),
    )


def _tpot_ms(request: Request) -> float | None:
    ms = request.stage_ms("decode")
    if ms is None or request.output_tokens is None or request.output_tokens < 2:
        return None
    return ms / (request.output_tokens - 1)


CAUSE = Cause(
    id="decode-bound",
    axis="capacity",
    needs=NEEDS,
    leads_to=(),
    measure=measure,
    decide=decide,
    share=share,
    remedy=remedy,
)
