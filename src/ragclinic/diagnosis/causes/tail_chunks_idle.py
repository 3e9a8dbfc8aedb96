"""The lower-ranked chunks add nothing to the answer and cost as much as the others.

How it becomes seconds: of six chunks the last four are two thirds of the context's prefill and KV memory.
What deceives:
- Cosines lie close together: their plain shares say nothing. What a last chunk scores here is taken off first.
- A confident retriever may be wrong: where the answers take their words from the tail, the tail is not idle,
  whatever the scores say. Without answers the confidence is lower.
- Questions that need many chunks ("list all ...") need the tail: the remedy ranks sentences over all chunks to a
  budget and does not cut the tail off.
It prefers to miss an idle tail with flat scores to cutting evidence away.
"""

from typing import NamedTuple

from ragclinic.diagnosis.confidence import from_few, graded
from ragclinic.diagnosis.latency_model import fit_latency
from ragclinic.diagnosis.measuring import Need, around, bounded
from ragclinic.diagnosis.near import answered
from ragclinic.diagnosis.needs import CHUNKS, GENERATION, SCORES
from ragclinic.diagnosis.pieces import pieces_without_keys
from ragclinic.diagnosis.remedies import BUDGET_TOKENS, compiler
from ragclinic.diagnosis.say import say
from ragclinic.diagnosis.score_mass import FIRST, MIN_CHUNKS, floor_score, mass_of_first
from ragclinic.diagnosis.types import Answer, Budget, Cause, Found, Interval, Missing, NotFound, Remedy
from ragclinic.diagnosis.use import used
from ragclinic.signals.seen import Request, Seen

IDLE_MASS = 0.87
"""Share of the score mass (0..1) in the first two chunks, from the published table of causes."""
SURELY_IDLE = 0.97
TAIL_USED = 0.25
"""Share of answers (0..1) that take words from the tail, above which it is not idle."""
ANSWERS_CHECKED = 16
"""Answers compared with their chunks, those nearest to P95: cutting six chunks into words takes some 10 ms."""
WITHOUT_ANSWERS = 0.85
"""Factor on the confidence where no answers were recorded to check the scores against."""

NEEDS = (SCORES, CHUNKS, GENERATION)


class Measured(NamedTuple):
    """Means over the requests around P95. `tail_used` is the share of answers that use a chunk of the tail."""

    chunks: float
    mass: float
    tail_tokens: float
    context_tokens: float
    tail_used: float | None
    saved_share: float
    identified: bool
    requests: int


def measure(seen: Seen) -> Measured | Missing:
    """Where the score mass lies in the prompts around P95, and what the tail costs."""
    requests = answered(seen)
    floor = floor_score(requests)

    def mass(request: Request) -> float | None:
        if not request.chunks or any(c.score is None for c in request.chunks):
            return None
        found = mass_of_first(request, floor)
        return 0.0 if found is None else found

    near = around(
        seen,
        Need(SCORES, mass),
        Need(CHUNKS, _tail_tokens),
        Need(GENERATION, lambda r: r.stage_ms("prefill")),
    )
    model = fit_latency(seen)
    if isinstance(near, Missing) or model is None:
        return near if isinstance(near, Missing) else Missing((GENERATION,))
    by_weight = sorted(zip(near.weights, near.requests, strict=True), key=lambda pair: (-pair[0], pair[1].id))
    checked = {r.id for _, r in by_weight[:ANSWERS_CHECKED]}
    return Measured(
        chunks=near.mean(lambda r: len(r.chunks) or None) or 0.0,
        mass=near.mean(mass) or 0.0,
        tail_tokens=near.mean(_tail_tokens) or 0.0,
        context_tokens=near.mean(lambda r: sum(p.tokens or 0.0 for p in pieces_without_keys(r)) or None) or 0.0,
        tail_used=near.mean(lambda r: _uses_tail(r) if r.id in checked else None),
        saved_share=near.share(lambda r: model.saved_ms(r, _cut_tokens(r))),
        identified=model.identified,
        requests=len(requests),
    )


def decide(m: Measured) -> Answer:
    """Found where the first two chunks hold the score mass and the answers do not draw on the others."""
    if m.chunks < MIN_CHUNKS:
        return NotFound(f"prompts hold {m.chunks:.1f} chunks: no tail")
    if m.mass < IDLE_MASS:
        return NotFound(f"the first two chunks hold {m.mass:.2f} of the score mass")
    if m.tail_used is not None and m.tail_used > TAIL_USED:
        return NotFound(f"{m.tail_used:.0%} of the answers take words from the lower-ranked chunks")
    confidence = graded(m.mass, IDLE_MASS, SURELY_IDLE)
    evidence = [
        say(
            "Around P95 the first two of {chunks:.0f} chunks hold {mass:.2f} of the score mass; the others take "
            "{tail:,.0f} of {context:,.0f} context tokens.",
            "在 P95 附近，{chunks:.0f} 块中前两块占分数质量的 {mass:.2f}；"
            "其余各块占 {context:,.0f} 个上下文 token 中的 {tail:,.0f} 个。",
            chunks=m.chunks,
            mass=m.mass,
            tail=m.tail_tokens,
            context=m.context_tokens,
        )
    ]
    if m.tail_used is None:
        confidence *= WITHOUT_ANSWERS
    else:
        evidence.append(
            say(
                "{used:.0%} of the answers take words from the others.",
                "只有 {used:.0%} 的答案用到了其余各块里的词。",
                used=m.tail_used,
            )
        )
    return Found(from_few(confidence, m.requests), tuple(evidence))


def share(m: Measured, budget: Budget) -> Interval:
    """The time of what a budget cuts of the tail, as part of P95."""
    return bounded(m.saved_share, budget, ("prefill", "decode"), m.identified)


def remedy(_m: Measured, _variant: str | None) -> Remedy:
    """Keep the best sentences of all chunks instead of all sentences of six chunks."""
    return Remedy(
        compiler(budget_tokens=BUDGET_TOKENS),
        say(
            "Keep the sentences that answer the question, up to {budget:,} tokens; a key sentence of a low-ranked "
            "chunk may stay.",
            "只保留与问题相关的句子，最多 {budget:,} 个 token；排名靠后的块里若有关键的一句，仍可留下。",
            budget=BUDGET_TOKENS,
        ),
    )


def _tail_tokens(request: Request) -> float | None:
    """Tokens of the pieces from the third rank on, or None where the pieces or their tokens are unknown."""
    found = pieces_without_keys(request)
    if not found or any(p.tokens is None for p in found):
        return None
    return sum(p.tokens or 0.0 for i, p in enumerate(found) if (i if p.rank is None else p.rank) >= FIRST)


def _cut_tokens(request: Request) -> float:
    """Tokens that the budget takes away, and no more than the tail holds."""
    beyond_budget = sum(p.tokens or 0.0 for p in pieces_without_keys(request)) - BUDGET_TOKENS
    return max(0.0, min(_tail_tokens(request) or 0.0, beyond_budget))


def _uses_tail(request: Request) -> float | None:
    """1 where the answer uses a chunk of the tail, 0 where not, None where that cannot be told."""
    chunks = sorted(request.chunks, key=lambda c: c.rank)
    found = used(request.answer, request.question, [c.text for c in chunks])
    return None if found is None else float(any(found[FIRST:]))


CAUSE = Cause(
    id="tail-chunks-idle",
    axis="context",
    needs=NEEDS,
    leads_to=("context-overfull", "kv-cache-exhausted"),
    measure=measure,
    decide=decide,
    share=share,
    remedy=remedy,
)
