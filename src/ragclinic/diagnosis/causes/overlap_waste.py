"""Neighbouring chunks of a document stand in one prompt, and the text they were cut with twice is read twice.

How it becomes seconds: the overlap of each two neighbours is prefill work and KV memory for nothing.
What deceives:
- A large configured overlap costs the prompt nothing while no neighbours meet in it; only prompts count.
- `context-redundant`: whole copies. An overlap of nine tenths of a chunk is a copy and no border.
- Jaccard makes it look small: neighbours that share a quarter of their text have 0.18. Tokens decide here.
It prefers to miss overlaps that it cannot place (no offsets and no text) to taking any likeness for one.
"""

from typing import NamedTuple

from ragclinic.diagnosis.confidence import from_few, graded
from ragclinic.diagnosis.latency_model import fit_latency
from ragclinic.diagnosis.measuring import Need, around, bounded
from ragclinic.diagnosis.near import answered
from ragclinic.diagnosis.needs import CHUNK_PLACES, CHUNKS, GENERATION
from ragclinic.diagnosis.remedies import compiler
from ragclinic.diagnosis.repetition import Repetition, repetition
from ragclinic.diagnosis.say import say
from ragclinic.diagnosis.types import Answer, Budget, Cause, Found, Interval, Missing, NotFound, Remedy
from ragclinic.signals.seen import Request, Seen

WASTED = 0.04
"""Share of the context's tokens (0..1): one border of 128 tokens among six chunks of 512 is 0.042."""
SURELY_WASTED = 0.15
"""Five borders among six such chunks, all of them neighbours, are 0.21; three 0.125."""

NEEDS = (CHUNKS, CHUNK_PLACES, GENERATION)


class Measured(NamedTuple):
    """Means over the requests around P95; `configured_tokens` is the splitter's overlap where it is known."""

    overlap_tokens: float
    context_tokens: float
    configured_tokens: int | None
    saved_share: float
    identified: bool
    requests: int


def measure(seen: Seen) -> Measured | Missing:
    """What neighbours repeat in the prompts around P95, and the time of it."""
    said: dict[str, Repetition | None] = {}

    def of(request: Request) -> Repetition | None:
        if request.id not in said:
            said[request.id] = repetition(request)
        return said[request.id]

    near = around(
        seen,
        Need(CHUNKS, lambda r: x.redundancy if (x := of(r)) else None),
        Need(CHUNK_PLACES, lambda r: x.neighbour_tokens if (x := of(r)) else None),
        Need(GENERATION, lambda r: r.stage_ms("prefill")),
    )
    model = fit_latency(seen)
    if isinstance(near, Missing) or model is None:
        return near if isinstance(near, Missing) else Missing((GENERATION,))
    configured = seen.settings.get("chunking.overlap_tokens")
    return Measured(
        overlap_tokens=near.mean(lambda r: x.neighbour_tokens if (x := of(r)) else None) or 0.0,
        context_tokens=near.mean(lambda r: x.context_tokens if (x := of(r)) else None) or 0.0,
        configured_tokens=configured if isinstance(configured, int) else None,
        saved_share=near.share(lambda r: model.saved_ms(r, x.neighbour_tokens or 0) if (x := of(r)) else None),
        identified=model.identified,
        requests=len(answered(seen)),
    )


def decide(m: Measured) -> Answer:
    """Found where neighbours repeat more than one usual border in six chunks."""
    wasted = m.overlap_tokens / m.context_tokens if m.context_tokens else 0.0
    if wasted < WASTED:
        return NotFound(f"neighbours repeat {wasted:.1%} of the context's tokens")
    evidence = [
        say(
            "Around P95 {overlap:,.0f} of {context:,.0f} context tokens ({wasted:.0%}) repeat the border of a "
            "neighbouring chunk.",
            "在 P95 附近，{context:,.0f} 个上下文 token 中有 {overlap:,.0f} 个（{wasted:.0%}）"
            "是相邻块重叠的边界。",
            overlap=m.overlap_tokens,
            context=m.context_tokens,
            wasted=wasted,
        )
    ]
    if m.configured_tokens:
        evidence.append(
            say(
                "Documents were cut with an overlap of {tokens} tokens.",
                "切分文档时设置的重叠是 {tokens} 个 token。",
                tokens=m.configured_tokens,
            )
        )
    return Found(from_few(graded(wasted, WASTED, SURELY_WASTED), m.requests), tuple(evidence))


def share(m: Measured, budget: Budget) -> Interval:
    """The time of the repeated borders, as part of P95."""
    return bounded(m.saved_share, budget, ("prefill", "decode"), m.identified)


def remedy(_m: Measured, _variant: str | None) -> Remedy:
    """Merge overlapping spans when the prompt is assembled; cutting anew would need a new index."""
    return Remedy(
        compiler(merge_overlap=True),
        say(
            "Merge overlapping spans of a document when the prompt is assembled. A smaller "
            "chunking.overlap_tokens would help too, but needs the documents ingested again.",
            "组装提示词时合并同一文档中相交的区间。减小 chunking.overlap_tokens 也有用，但需要重新入库。",
        ),
    )


CAUSE = Cause(
    id="overlap-waste",
    axis="context",
    needs=NEEDS,
    leads_to=("context-overfull", "kv-cache-exhausted"),
    measure=measure,
    decide=decide,
    share=share,
    remedy=remedy,
)
