"""Fills the page's view model from what was seen, what was diagnosed and what was compared."""

from collections.abc import Sequence

from ragclinic.context import sentence_texts
from ragclinic.diagnosis import diagnose, fit_latency, heat_map, point, price_chunks, request_axes
from ragclinic.diagnosis.compare_types import Comparison
from ragclinic.diagnosis.near import Near, answered, near_p95
from ragclinic.diagnosis.prefix import excerpt, predecessors
from ragclinic.diagnosis.types import Diagnosis
from ragclinic.report.page import (
    Fact,
    FlameNode,
    HeatPoint,
    Page,
    PrefixPointer,
    PriceTag,
    PromptView,
    RunView,
    Segment,
    ZoneShares,
)
from ragclinic.signals.records import Part
from ragclinic.signals.seen import Request, Seen

SERVER = frozenset({"queue", "load", "prefill", "decode"})
MIN_TEXT = 12
"""Characters below which a piece of text found elsewhere proves nothing."""


def build_page(
    before: Seen, diagnosis: Diagnosis, after: Seen | None = None, comparison: Comparison | None = None
) -> Page:
    """The page of one recording, or of two with their comparison."""
    near = near_p95(answered(before))
    shown = _shown(before, near, after)
    treated = _treated(shown, after)
    return Page(
        source=before.source,
        diagnosis=diagnosis,
        before=_run(before, diagnosis),
        after=_run(after, diagnose(after, diagnosis.slo_ms)) if after is not None else None,
        comparison=comparison,
        plane=heat_map(()).plane,
        prompt=_prompt(shown, treated) if shown is not None else None,
        prices=_prices(shown, treated, before) if shown is not None else (),
        pointer=_pointer(before, shown),
        facts=_facts(before, len(before.requests)),
    )


def _run(seen: Seen, diagnosis: Diagnosis) -> RunView:
    requests = answered(seen)
    map_ = heat_map(request_axes(requests, seen.memory))
    near = near_p95(requests)
    return RunView(
        p95_ms=near.p95_ms if near else 0.0,
        budget=diagnosis.budget,
        total_ms=[r.total_ms for r in requests],
        ttft_ms=[r.first_byte_ms for r in requests if r.first_byte_ms is not None],
        points=tuple(HeatPoint(p.memory, p.redundancy, p.seconds) for p in map_.points),
        zones=ZoneShares(map_.share("ideal"), map_.share("coupled"), map_.share("contended"))
        if map_.points
        else None,
        flame=_flame(diagnosis),
    )


def _flame(diagnosis: Diagnosis) -> FlameNode | None:
    """The budget as a tree: what the LLM server does hangs below one frame."""
    if not diagnosis.budget:
        return None
    server = tuple(FlameNode(s.stage, s.p95_ms) for s in diagnosis.budget if s.stage in SERVER)
    rest = tuple(FlameNode(s.stage, s.p95_ms) for s in diagnosis.budget if s.stage not in SERVER)
    held = (FlameNode("generate", sum(n.value_ms for n in server), server),) if server else ()
    return FlameNode("request", sum(s.p95_ms for s in diagnosis.budget), (*rest, *held))


def _shown(before: Seen, near: Near | None, after: Seen | None) -> Request | None:
    """The request whose prompt is shown: the nearest to P95 that has texts, and was asked of the LLM again."""
    if near is None:
        return None
    again = {r.question_key for r in after.requests if r.parts} if after is not None else None
    candidates = [
        r
        for r in sorted(answered(before), key=lambda r: abs(r.total_ms - near.p95_ms))
        if any(p.text for p in r.parts) and (again is None or r.question_key in again)
    ]
    return candidates[0] if candidates else None


def _treated(shown: Request | None, after: Seen | None) -> Request | None:
    if shown is None or after is None:
        return None
    return next((r for r in after.requests if r.question_key == shown.question_key and r.parts), None)


def _prompt(before: Request, after: Request | None) -> PromptView:
    return PromptView(
        question=before.question or "",
        before=tuple(s for part in before.parts if part.text for s in _segments(part, before, after)),
        before_tokens=before.prompt_tokens or 0,
        after=tuple(Segment(p.text, p.role) for p in after.parts if p.text) if after else (),
        after_tokens=after.prompt_tokens if after else None,
    )


def _segments(part: Part, before: Request, after: Request | None) -> Sequence[Segment]:
    text = part.text or ""
    if after is None:
        return [Segment(text, part.role)]
    if part.role == "volatile":
        return [Segment(text, part.role, kept=True, why="moved")]
    if part.role != "context":
        return [Segment(text, part.role)]
    kept = _flat(_context(after))
    earlier = _flat(
        "".join(p.text or "" for p in before.parts if p.role == "context" and p.position < part.position)
    )
    return [
        Segment(sentence, part.role, *_fate(_flat(sentence), kept, earlier)) for sentence in sentence_texts(text)
    ]


def _fate(sentence: str, kept: str, earlier: str) -> tuple[bool, str]:
    """Whether the sentence is in the treated context, and why not: said before in this prompt, or ranked low."""
    if len(sentence) >= MIN_TEXT and sentence in earlier:
        return False, "duplicate"
    if sentence and sentence in kept:
        return True, ""
    return False, "below the cut"


def _prices(before: Request, after: Request | None, seen: Seen) -> tuple[PriceTag, ...]:
    kept = _flat(_context(after)) if after else None
    texts = {p.rank: p.text or "" for p in before.parts if p.role == "context"}
    return tuple(
        PriceTag(
            rank=price.rank if price.rank is not None else position,
            doc=price.doc or "",
            tokens=round(price.tokens or 0),
            prefill_ms=price.prefill_ms,
            kv_byte_seconds=price.kv_byte_seconds,
            overlap_tokens=None if price.shared_tokens is None else round(price.shared_tokens),
            used=price.used,
            kept=None if kept is None else _any_kept(texts.get(price.rank, ""), kept),
        )
        for position, price in enumerate(price_chunks(before, fit_latency(seen), seen.kv_bytes_per_token))
    )


def _any_kept(chunk: str, kept: str) -> bool:
    return any(len(flat := _flat(s)) >= MIN_TEXT and flat in kept for s in sentence_texts(chunk))


def _pointer(seen: Seen, shown: Request | None) -> PrefixPointer | None:
    if shown is None:
        return None
    earlier = predecessors(seen.requests).get(shown.id)
    found = point(earlier, shown) if earlier is not None else None
    texts = excerpt(earlier, shown) if earlier is not None else None
    if found is None or texts is None or not found.lost_tokens:
        return None
    return PrefixPointer(found.token, found.role, texts.common, texts.first, texts.second, found.lost_tokens)


def _facts(seen: Seen, questions: int) -> tuple[Fact, ...]:
    facts = [("machine", seen.machine), ("llm", seen.model), ("questions", str(questions))]
    facts += [("users", str(seen.slots) if seen.slots else None)]
    facts += [("versions", ", ".join(f"{k} {v}" for k, v in seen.versions.items()) or None)]
    return tuple(Fact(label, value) for label, value in facts if value)


def _context(request: Request) -> str:
    return "\n".join(p.text or "" for p in request.parts if p.role == "context")


def _flat(text: str) -> str:
    return "".join(text.split())
