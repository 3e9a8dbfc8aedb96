"""Prompts fill more than three quarters of the window.

How it becomes seconds: every token of the prompt is read before the first of the answer, attention to all tokens
before it makes each one dearer, and what the cache holds for it stays held until the answer is done.
What deceives:
- A mostly cached history: cached is not free. The fill counts cached tokens; the share only what was computed.
- `prompt-truncated`: prompts that stick *at* the window had text dropped. Then the fill tells nothing of what the
  prompts would be, and the answer is *cannot tell*.
- Redundant chunks that fill the window are the root: they come first and lead to this.
It prefers to miss a window nobody configured (unknown size) to guessing one.
"""

from typing import NamedTuple

from ragclinic.diagnosis.confidence import from_few, graded
from ragclinic.diagnosis.latency_model import fit_latency
from ragclinic.diagnosis.measuring import Need, around, bounded
from ragclinic.diagnosis.near import answered
from ragclinic.diagnosis.needs import GENERATION, PROMPT_TOKENS, WINDOW
from ragclinic.diagnosis.pieces import context_tokens
from ragclinic.diagnosis.remedies import BUDGET_TOKENS, compiler
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

FULL = 0.75
"""Share of the window (0..1), from the published table of causes."""
SURELY_FULL = 0.95
AT_WINDOW = 0.98
"""Share of the window from which on a prompt stands at it: the answer needs room too."""
EASY = 0.5
"""Fill to come down to where the recording does not tell which tokens are context."""
MOSTLY = 0.5
"""Weight of the requests around P95."""

NEEDS = (PROMPT_TOKENS, WINDOW, GENERATION)


class Measured(NamedTuple):
    """Means over the requests around P95. `saved_share` is the share of their time that the remedy takes away."""

    fill: float
    prompt_tokens: float
    window_tokens: float
    cached_tokens: float
    at_window_share: float
    saved_share: float
    identified: bool
    requests: int


def measure(seen: Seen) -> Measured | Missing:
    """The fill of the window around P95, and the time of the context beyond the compiler's budget."""

    def window(request: Request) -> float | None:
        configured = seen.settings.get("llm.window_tokens")
        return request.window_tokens or (configured if isinstance(configured, int) else None)

    def fill(request: Request) -> float | None:
        size = window(request)
        return request.prompt_tokens / size if request.prompt_tokens is not None and size else None

    def beyond(request: Request) -> float:
        context = context_tokens(request)
        if context is not None:
            return max(0.0, context - BUDGET_TOKENS)
        return max(0.0, (request.prompt_tokens or 0) - EASY * (window(request) or 0))

    near = around(
        seen,
        Need(PROMPT_TOKENS, lambda r: r.prompt_tokens),
        Need(WINDOW, window),
        Need(GENERATION, lambda r: r.stage_ms("prefill")),
    )
    model = fit_latency(seen)
    if isinstance(near, Missing) or model is None:
        return near if isinstance(near, Missing) else Missing((GENERATION,))
    return Measured(
        fill=near.mean(fill) or 0.0,
        prompt_tokens=near.mean(lambda r: r.prompt_tokens) or 0.0,
        window_tokens=near.mean(window) or 0.0,
        cached_tokens=near.mean(lambda r: r.cached_tokens or 0) or 0.0,
        at_window_share=near.mean(lambda r: None if (f := fill(r)) is None else float(f >= AT_WINDOW)) or 0.0,
        saved_share=near.share(lambda r: model.saved_ms(r, beyond(r))),
        identified=model.identified,
        requests=len(answered(seen)),
    )


def decide(m: Measured) -> Answer:
    """Found where the window is more than three quarters full and prompts do not stick at it."""
    if m.fill <= FULL:
        return NotFound(f"prompts fill {m.fill:.0%} of the window of {m.window_tokens:,.0f} tokens")
    if m.at_window_share >= MOSTLY:
        return CannotTell(
            because=say(
                "{share:.0%} of the requests around P95 stand at the window: text may have been dropped "
                "(prompt-truncated)",
                "P95 附近 {share:.0%} 的请求正好到达窗口上限：可能有文字被丢弃（prompt-truncated）",
                share=m.at_window_share,
            )
        )
    evidence = [
        say(
            "Around P95 a prompt has {prompt:,.0f} tokens and fills {fill:.0%} of the window of {window:,.0f}.",
            "在 P95 附近，提示词有 {prompt:,.0f} 个 token，占满窗口（{window:,.0f}）的 {fill:.0%}。",
            prompt=m.prompt_tokens,
            fill=m.fill,
            window=m.window_tokens,
        )
    ]
    if m.cached_tokens >= MOSTLY * m.prompt_tokens:
        evidence.append(
            say(
                "{cached:,.0f} of them come from the prefix cache; they still take attention and KV memory.",
                "其中 {cached:,.0f} 个来自前缀缓存，但仍要付出注意力计算和 KV 显存。",
                cached=m.cached_tokens,
            )
        )
    return Found(from_few(graded(m.fill, FULL, SURELY_FULL), m.requests), tuple(evidence))


def share(m: Measured, budget: Budget) -> Interval:
    """The time of the context beyond the budget, as part of P95."""
    return bounded(m.saved_share, budget, ("prefill", "decode"), m.identified)


def remedy(_m: Measured, _variant: str | None) -> Remedy:
    """Compress the context to a budget."""
    return Remedy(
        compiler(budget_tokens=BUDGET_TOKENS),
        say(
            "Rank sentences against the question and fill a budget of {budget:,} tokens instead of the window.",
            "按与问题的相关程度给句子排序，只装满 {budget:,} 个 token 的预算，而不是装满窗口。",
            budget=BUDGET_TOKENS,
        ),
    )


CAUSE = Cause(
    id="context-overfull",
    axis="context",
    needs=NEEDS,
    leads_to=("kv-cache-exhausted", "prompt-truncated"),
    measure=measure,
    decide=decide,
    share=share,
    remedy=remedy,
)
