"""Retrieved chunks say the same thing: copies, versions and boilerplate of each other.

How it becomes seconds: each copy is read and held like new text, and says nothing new.
What deceives:
- `overlap-waste`: neighbours in a document are alike because they were cut with an overlap. Pairs that overlap are
  left out of every number here; what only they explain is not this cause.
- A mean hides one pair of copies among six chunks (1 of 15 pairs), so the repeated tokens decide as well.
- Paraphrases share no shingles: they are not seen. It prefers to miss them to calling one topic one text.
"""

from typing import NamedTuple

from ragclinic.diagnosis.confidence import from_few, graded
from ragclinic.diagnosis.latency_model import fit_latency
from ragclinic.diagnosis.measuring import Need, around, bounded
from ragclinic.diagnosis.near import answered
from ragclinic.diagnosis.needs import CHUNKS, GENERATION
from ragclinic.diagnosis.remedies import compiler
from ragclinic.diagnosis.repetition import Repetition, repetition
from ragclinic.diagnosis.say import say
from ragclinic.diagnosis.types import Answer, Budget, Cause, Found, Interval, Missing, NotFound, Remedy
from ragclinic.signals.seen import Request, Seen

REDUNDANT = 0.10
"""Mean pairwise Jaccard (0..1): unrelated chunks of 500 tokens have 0.02, two pairs of copies among six 0.13."""
SURELY_REDUNDANT = 0.4
REPEATED = 0.15
"""Share of the context's tokens (0..1): one copy among six chunks is 0.17."""
SURELY_REPEATED = 0.5
UNSURE_OF_NEIGHBOURS = 0.8
"""Factor on the confidence where the recording does not tell which chunks are neighbours."""

NEEDS = (CHUNKS, GENERATION)


class Measured(NamedTuple):
    """Means over the requests around P95; `apart` is without pairs that overlap as neighbours in a document."""

    redundancy: float
    redundancy_apart: float
    duplicate_tokens: float
    context_tokens: float
    neighbours_known: bool
    saved_share: float
    identified: bool
    requests: int


def measure(seen: Seen) -> Measured | Missing:
    """What the prompts around P95 say twice, and the time of the second saying."""
    said: dict[str, Repetition | None] = {}

    def of(request: Request) -> Repetition | None:
        if request.id not in said:
            said[request.id] = repetition(request)
        return said[request.id]

    near = around(
        seen,
        Need(CHUNKS, lambda r: x.redundancy if (x := of(r)) else None),
        Need(GENERATION, lambda r: r.stage_ms("prefill")),
    )
    model = fit_latency(seen)
    if isinstance(near, Missing) or model is None:
        return near if isinstance(near, Missing) else Missing((GENERATION,))
    return Measured(
        redundancy=near.mean(lambda r: x.redundancy if (x := of(r)) else None) or 0.0,
        redundancy_apart=near.mean(lambda r: x.redundancy_apart if (x := of(r)) else None) or 0.0,
        duplicate_tokens=near.mean(lambda r: x.duplicate_tokens if (x := of(r)) else None) or 0.0,
        context_tokens=near.mean(lambda r: x.context_tokens if (x := of(r)) else None) or 0.0,
        neighbours_known=near.mean(lambda r: x.neighbour_tokens if (x := of(r)) else None) is not None,
        saved_share=near.share(lambda r: model.saved_ms(r, x.duplicate_tokens) if (x := of(r)) else None),
        identified=model.identified,
        requests=len(answered(seen)),
    )


def decide(m: Measured) -> Answer:
    """Found where chunks are alike, or repeat tokens, for another reason than their overlap as neighbours."""
    repeated = m.duplicate_tokens / m.context_tokens if m.context_tokens else 0.0
    if m.redundancy_apart < REDUNDANT and repeated < REPEATED:
        if m.redundancy >= REDUNDANT:
            return NotFound(
                f"mean pairwise Jaccard is {m.redundancy:.2f}, but {m.redundancy_apart:.2f} without neighbours "
                "that overlap (overlap-waste)"
            )
        return NotFound(
            f"mean pairwise Jaccard is {m.redundancy_apart:.2f}; {repeated:.0%} of tokens repeat others"
        )
    confidence = max(
        graded(m.redundancy_apart, REDUNDANT, SURELY_REDUNDANT),
        graded(repeated, REPEATED, SURELY_REPEATED),
    )
    if not m.neighbours_known:
        confidence *= UNSURE_OF_NEIGHBOURS
    evidence = say(
        "Around P95 chunks of one prompt are alike by {jaccard:.2f} (mean pairwise Jaccard; unrelated ones have "
        "0.02), and {repeated:,.0f} of {context:,.0f} context tokens repeat a better-ranked chunk.",
        "在 P95 附近，同一提示词里各块的平均两两 Jaccard 为 {jaccard:.2f}（互不相关时约 0.02），"
        "{context:,.0f} 个上下文 token 中有 {repeated:,.0f} 个重复了排名更前的块。",
        jaccard=m.redundancy_apart,
        repeated=m.duplicate_tokens,
        context=m.context_tokens,
    )
    return Found(from_few(confidence, m.requests), (evidence,))


def share(m: Measured, budget: Budget) -> Interval:
    """The time of the repeated tokens, as part of P95."""
    return bounded(m.saved_share, budget, ("prefill", "decode"), m.identified)


def remedy(_m: Measured, _variant: str | None) -> Remedy:
    """Drop what was said before."""
    return Remedy(
        compiler(deduplicate=True),
        say(
            "Drop sentences that a better-ranked chunk says already.",
            "去掉排名更前的块已经说过的句子。",
        ),
    )


CAUSE = Cause(
    id="context-redundant",
    axis="context",
    needs=NEEDS,
    leads_to=("context-overfull", "kv-cache-exhausted"),
    measure=measure,
    decide=decide,
    share=share,
    remedy=remedy,
)
