"""A recording as columns, one row a request: times and tokens, ready to be computed with."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ragclinic.diagnosis.axes import sampled
from ragclinic.diagnosis.near import near_p95
from ragclinic.diagnosis.pieces import context_tokens
from ragclinic.diagnosis.prefix import predecessors, shareable_tokens
from ragclinic.diagnosis.repetition import repetition
from ragclinic.diagnosis.robust import Floats
from ragclinic.signals.seen import Request


@dataclass(frozen=True, slots=True)
class Times:
    """Columns of ms, one row a request; `rest` is all that is neither of the others."""

    rest: Floats
    load: Floats
    queue: Floats
    prefill: Floats
    decode: Floats

    def total(self) -> Floats:
        """The sum of the columns."""
        return self.rest + self.load + self.queue + self.prefill + self.decode


@dataclass(frozen=True, slots=True)
class Prompts:
    """Columns of tokens, one row a request: computed anew, and in all."""

    computed: Floats
    context: Floats


@dataclass(frozen=True, slots=True)
class Compilation:
    """What a compiler would find in each prompt: context tokens, shares of them repeated, tokens before them.

    Prompts outside the sample whose chunks were compared are given its mean shares.
    """

    tokens: Floats
    duplicate_share: Floats
    overlap_share: Floats
    tokens_before: Floats

    @classmethod
    def of(cls, requests: Sequence[Request]) -> "Compilation":
        """The columns of these requests."""
        near = near_p95(requests)
        looked_at = sampled(requests, near) if near else ()
        found = {r.id: said for r in looked_at if (said := repetition(r)) is not None and said.context_tokens}
        shares = {
            key: (
                said.duplicate_tokens / said.context_tokens,
                (said.neighbour_tokens or 0.0) / said.context_tokens,
            )
            for key, said in found.items()
        }
        mean = tuple(float(v) for v in np.mean(list(shares.values()), axis=0)) if shares else (0.0, 0.0)
        duplicate, overlap = (
            zip(*(shares.get(r.id, mean) for r in requests), strict=True) if requests else ((), ())
        )
        return cls(
            tokens=np.array([context_tokens(r) or 0.0 for r in requests], dtype=float),
            duplicate_share=np.array(duplicate, dtype=float),
            overlap_share=np.array(overlap, dtype=float),
            tokens_before=np.array([_tokens_before_context(r) for r in requests], dtype=float),
        )

    def after(self, settings: Mapping[str, object]) -> Floats:
        """Context tokens that the compiler with these settings would leave."""
        gone = np.zeros_like(self.tokens)
        if settings.get("compiler.deduplicate"):
            gone = gone + self.duplicate_share
        if settings.get("compiler.merge_overlap"):
            gone = gone + self.overlap_share
        left = self.tokens * np.maximum(0.0, 1 - gone)
        budget = settings.get("compiler.budget_tokens")
        return np.minimum(left, float(budget)) if isinstance(budget, int) and budget > 0 else left


def times_of(requests: Sequence[Request]) -> Times:
    """The requests' times as recorded."""

    def column(name: str) -> Floats:
        return np.array([r.stage_ms(name) or 0.0 for r in requests], dtype=float)

    load, queue, prefill, decode = (column(name) for name in ("load", "queue", "prefill", "decode"))
    total = np.array([r.total_ms for r in requests], dtype=float)
    return Times(np.maximum(0.0, total - load - queue - prefill - decode), load, queue, prefill, decode)


def prompts_of(requests: Sequence[Request]) -> Prompts:
    """The requests' prompts as recorded; unknown counts are 0."""
    return Prompts(
        computed=np.array([r.computed_tokens or 0 for r in requests], dtype=float),
        context=np.array([r.prompt_tokens or 0 for r in requests], dtype=float),
    )


def stable_prefixes(requests: Sequence[Request]) -> Floats:
    """Tokens that each prompt would find cached if what is stable stood first."""
    before = predecessors(requests)
    return np.array([shareable_tokens(before[r.id], r) if r.id in before else 0 for r in requests], dtype=float)


def _tokens_before_context(request: Request) -> float:
    """Prompt tokens that stand before the first chunk; all where there is no chunk."""
    tokens = 0.0
    for part in request.parts:
        if part.role == "context":
            return tokens
        tokens += part.tokens
    return float(request.prompt_tokens or 0)


def before_server_ms(request: Request) -> float:
    """Time from arrival to the LLM server; the whole time where it was not asked."""
    starts = [s.start_ms for s in request.stages if s.name in ("load", "queue", "prefill")]
    return min(starts) if starts else request.total_ms


def no_stage_ms(request: Request) -> float:
    """Time that no stage covers: what an answer from a cache still takes."""
    return max(0.0, request.total_ms - sum(s.duration_ms for s in request.stages))
