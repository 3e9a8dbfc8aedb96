"""Something volatile early in the prompt, or a changing order, defeats the prefix cache.

How it becomes seconds: system prompt and history are the same from turn to turn and are computed anew each time,
because the first token that differs ends what can be reused.
What deceives:
- Cached tokens need not be near zero: they stay *constant* from turn to turn while the prompt grows. What decides
  is what two successive prompts could share and do not.
- `prefix-cache-unusable`: the prompts agree for long, and still little is cached. Then the engine cannot resume a
  prefix and no order of the prompt helps. Told apart by the longest common prefix.
- Chunks differ from question to question: that is not instability. Only system prompt, history, and chunks that
  are the very same in another order count as shareable.
- A mostly cached long history still costs: that is `history-bloat` or `context-overfull`, not this.
It prefers to miss a small loss (a short system prompt behind a clock) to naming it among bigger ones.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ragclinic.diagnosis.confidence import from_few, graded
from ragclinic.diagnosis.latency_model import fit_latency
from ragclinic.diagnosis.measuring import MIN_KNOWN, Need, around, bounded
from ragclinic.diagnosis.near import Near, answered
from ragclinic.diagnosis.needs import CACHED_TOKENS, GENERATION, PROMPT_PARTS, PROMPT_TOKENS
from ragclinic.diagnosis.prefix import Pointer, point, predecessors
from ragclinic.diagnosis.remedies import DOCUMENT_ORDER, STABLE_ORDER
from ragclinic.diagnosis.say import Sentence, say
from ragclinic.diagnosis.turns import Growth, growth
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

LOST = 0.05
"""Share of the prompt (0..1) that could be reused and is not."""
SURELY_LOST = 0.4
LOST_TOKENS = 32
"""Two cache blocks of 16 tokens (vLLM): less is not reused by block caches anyway."""
ENGINE_REUSES = 0.5
"""Share of the common prefix (0..1) below which the engine, not the prompt, is in the way."""
CONSTANT_ONLY = 0.85
"""Factor on the confidence where only token counts were seen and not the prompts."""

NEEDS = (PROMPT_PARTS, PROMPT_TOKENS, CACHED_TOKENS, GENERATION)


class Measured(NamedTuple):
    """Means over the requests around P95, in tokens.

    `shareable` could be common to a prompt and the one before, `common` is, `cached` was reused (None where not
    reported). `role` and `token` say where most of them part. Without prompts, `constant` tells sessions whose
    cached tokens stay the same while their prompts grow.
    """

    prompt_tokens: float
    shareable: float | None
    common: float | None
    cached: float | None
    lost: float
    role: str | None
    token: float | None
    same_chunks: bool
    constant: Growth | None
    saved_share: float
    identified: bool
    requests: int


def measure(seen: Seen) -> Measured | Missing:
    """What successive prompts could share, do share, and had cached; by tokens, else by counts turn by turn."""
    near = around(
        seen,
        Need(PROMPT_TOKENS, lambda r: r.prompt_tokens),
        Need(GENERATION, lambda r: r.stage_ms("prefill")),
    )
    model = fit_latency(seen)
    if isinstance(near, Missing) or model is None:
        return near if isinstance(near, Missing) else Missing((GENERATION,))
    requests = answered(seen)
    pointers = _pointers(requests, near)
    turns = growth(requests)
    # The first request has no prompt before it, and may well be the slowest: its parts are known all the same.
    if not pointers or near.known(lambda r: 1.0 if any(p.token_keys for p in r.parts) else None) < MIN_KNOWN:
        if turns is None:
            cached_known = near.known(lambda r: r.cached_tokens) >= MIN_KNOWN
            return Missing((PROMPT_PARTS,) if cached_known else (PROMPT_PARTS, CACHED_TOKENS))
        pointers = {}

    def lost(request: Request) -> float | None:
        if not pointers:
            return turns.lost.get(request.id, 0.0) if turns else None
        pointer = pointers.get(request.id)
        if pointer is None:
            return None
        return max(0.0, pointer.shareable_tokens - max(pointer.token, request.cached_tokens or 0))

    return Measured(
        prompt_tokens=near.mean(lambda r: r.prompt_tokens) or 0.0,
        shareable=near.mean(lambda r: p.shareable_tokens if (p := pointers.get(r.id)) else None),
        common=near.mean(lambda r: p.token if (p := pointers.get(r.id)) else None),
        cached=near.mean(lambda r: r.cached_tokens),
        lost=near.mean(lost) or 0.0,
        role=_most(near, pointers),
        token=near.mean(lambda r: p.token if (p := pointers.get(r.id)) else None),
        same_chunks=(near.mean(lambda r: float(p.same_chunks) if (p := pointers.get(r.id)) else None) or 0.0)
        >= MIN_KNOWN,
        constant=None if pointers else turns,
        saved_share=near.share(lambda r: model.cached_ms(r, x) if (x := lost(r)) else None),
        identified=model.identified,
        requests=len(requests),
    )


def decide(m: Measured) -> Answer:
    """Found where enough of the prompt could be reused and is not, because the prompts part before it."""
    lost_share = m.lost / m.prompt_tokens if m.prompt_tokens else 0.0
    if m.common is None or m.shareable is None:
        return _by_counts(m, lost_share)
    if m.lost < LOST_TOKENS or lost_share < LOST:
        if m.cached is not None and m.cached < ENGINE_REUSES * m.common:
            return NotFound(
                f"successive prompts agree for {m.common:,.0f} tokens and {m.cached:,.0f} are cached: the engine "
                "does not reuse what it could (prefix-cache-unusable)"
            )
        return NotFound(f"{m.lost:,.0f} of {m.prompt_tokens:,.0f} prompt tokens could be reused and are not")
    confidence = graded(lost_share, LOST, SURELY_LOST)
    evidence: list[Sentence] = [
        say(
            "Around P95 a prompt could share {shareable:,.0f} of its {prompt:,.0f} tokens with the one before and "
            "parts from it at token {token:,.0f}, in the {role} part: {lost:,.0f} tokens are computed again.",
            "在 P95 附近，提示词的 {prompt:,.0f} 个 token 中有 {shareable:,.0f} 个可与上一个提示词共享，"
            "却在第 {token:,.0f} 个 token（{role} 部分）处分叉：{lost:,.0f} 个 token 被重算。",
            shareable=m.shareable,
            prompt=m.prompt_tokens,
            token=m.token or 0.0,
            role=m.role,
            lost=m.lost,
        )
    ]
    if m.cached is None:
        confidence *= CONSTANT_ONLY
    else:
        evidence.append(
            say(
                "The server reports {cached:,.0f} cached prompt tokens.",
                "服务器报告命中缓存的提示词 token 为 {cached:,.0f} 个。",
                cached=m.cached,
            )
        )
    return Found(from_few(confidence, m.requests), tuple(evidence), _variant(m))


def _by_counts(m: Measured, lost_share: float) -> Answer:
    """The answer where only token counts turn by turn were seen."""
    if m.constant is None or m.constant.constant_share < MIN_KNOWN:
        return NotFound("cached tokens grow with the prompts from turn to turn")
    if m.constant.cached_tokens < LOST_TOKENS:
        return CannotTell(
            (PROMPT_PARTS,),
            say(
                "nothing is cached: whether the prompts or the engine prevent it, only the prompts tell",
                "没有任何命中：原因在提示词还是在引擎，只有看到提示词才能判断",
            ),
        )
    if m.lost < LOST_TOKENS or lost_share < LOST:
        return NotFound(f"{m.lost:,.0f} tokens of history are computed again")
    evidence = say(
        "In {share:.0%} of the sessions cached tokens stay at {cached:,.0f} from turn to turn while prompts grow "
        "from {first:,.0f} to {last:,.0f} tokens.",
        "{share:.0%} 的会话里，提示词从 {first:,.0f} 增长到 {last:,.0f} 个 token，"
        "命中缓存的 token 却始终是 {cached:,.0f} 个。",
        share=m.constant.constant_share,
        cached=m.constant.cached_tokens,
        first=m.constant.first_tokens,
        last=m.constant.last_tokens,
    )
    confidence = CONSTANT_ONLY * graded(lost_share, LOST, SURELY_LOST)
    return Found(from_few(confidence, m.requests), (evidence,))


def share(m: Measured, budget: Budget) -> Interval:
    """The prefill of what could be reused, as part of P95."""
    return bounded(m.saved_share, budget, ("prefill",), m.identified)


def remedy(_m: Measured, variant: str | None) -> Remedy:
    """Put what changes last; or, where only the order of the chunks changes, keep it."""
    if variant == "chunk-order":
        return Remedy(
            DOCUMENT_ORDER,
            say(
                "Lay chunks out in document order, so that the same chunks make the same prefix.",
                "各块按文档中的位置排列，同样的块就有同样的前缀。",
            ),
        )
    return Remedy(
        STABLE_ORDER,
        say(
            "Put what changes last: system prompt, history, context, question, then the clock.",
            "易变的放最后：系统提示、历史、上下文、问题，最后才是时间。",
        ),
    )


def _pointers(requests: Sequence[Request], near: Near) -> Mapping[str, Pointer]:
    before = predecessors(requests)
    found = ((r.id, point(before[r.id], r)) for r in near.requests if r.id in before)
    return {key: pointer for key, pointer in found if pointer is not None}


def _most(near: Near, pointers: Mapping[str, Pointer]) -> str | None:
    weights: dict[str, float] = {}
    for request, weight in zip(near.requests, near.weights, strict=True):
        if request.id in pointers:
            role = pointers[request.id].role
            weights[role] = weights.get(role, 0.0) + weight
    return max(weights, key=lambda role: (weights[role], role), default=None)


def _variant(m: Measured) -> str:
    if m.role == "context":
        return "chunk-order" if m.same_chunks else "context-early"
    return "volatile-early"


CAUSE = Cause(
    id="prefix-unstable",
    axis="context",
    needs=NEEDS,
    leads_to=("kv-cache-exhausted",),
    measure=measure,
    decide=decide,
    share=share,
    remedy=remedy,
)
