"""Two runs of the same questions, side by side: faster, slower or not shown, and is the evidence still there."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ragclinic.diagnosis.compare_types import (
    AnswersCompared,
    Comparison,
    ComparisonVerdict,
    Percentiles,
    RunSummary,
)
from ragclinic.diagnosis.types import Interval, Prediction
from ragclinic.signals.content import question_key
from ragclinic.signals.seen import Request, Seen

RESAMPLES = 2000
CONFIDENCE = 0.95
SEED = 20261201
Floats = NDArray[np.float64]
Similarity = Callable[[Sequence[tuple[str, str]]], float]


@dataclass(frozen=True, slots=True)
class Gold:
    """Spans of which one must be in the prompt for a question to be answerable, and what a right answer says."""

    evidence: tuple[str, ...]
    answer: str


def compare(
    before: Seen,
    after: Seen,
    gold: Mapping[str, Gold] | None = None,
    contexts: tuple[Mapping[str, str], Mapping[str, str]] | None = None,
    predicted: Prediction | None = None,
    similarity: Similarity | None = None,
) -> Comparison:
    """The comparison of two recordings; requests are paired by their question, in order.

    `gold` goes by question key. `contexts` are the prompts' contexts by question key for each run; without them
    they are taken from the recordings. Requests that failed are counted and left out of the times.
    """
    pairs = paired(before.requests, after.requests)
    seen_contexts = contexts or (recorded_contexts(before), recorded_contexts(after))
    total = _ratio(pairs, lambda r: r.total_ms)
    ttft = _ratio(pairs, lambda r: r.first_byte_ms)
    if total is None:
        total = Interval(1.0, 0.0, float("inf"))
    return Comparison(
        before=summarise("as found", before, gold, seen_contexts[0]),
        after=summarise("treated", after, gold, seen_contexts[1]),
        questions=len(pairs),
        verdict=_verdict(total, len(pairs)),
        speedup_total_p95=total,
        speedup_ttft_p95=ttft,
        predicted=predicted,
        answers=_answers(pairs, similarity),
    )


def paired(before: Sequence[Request], after: Sequence[Request]) -> list[tuple[Request, Request]]:
    """The n-th asking of a question before with its n-th asking after; what has no partner is left out."""
    waiting: dict[str, list[Request]] = {}
    for request in after:
        if request.error is None and request.question_key:
            waiting.setdefault(request.question_key, []).append(request)
    found: list[tuple[Request, Request]] = []
    for request in before:
        partners = waiting.get(request.question_key or "")
        if request.error is None and partners:
            found.append((request, partners.pop(0)))
    return found


def summarise(name: str, seen: Seen, gold: Mapping[str, Gold] | None, contexts: Mapping[str, str]) -> RunSummary:
    """One run in numbers."""
    good = [r for r in seen.requests if r.error is None]
    first = [r.first_byte_ms for r in good if r.first_byte_ms is not None]
    asked = [r for r in good if not r.answer_cached]
    return RunSummary(
        name=name,
        requests=len(seen.requests),
        total_ms=percentiles([r.total_ms for r in good]),
        ttft_ms=percentiles(first) if first else None,
        prompt_tokens_mean=_mean([r.prompt_tokens for r in asked]),
        output_tokens_mean=_mean([r.output_tokens for r in asked]),
        cached_tokens_mean=_mean([r.cached_tokens for r in asked]),
        answers_from_cache=sum(bool(r.answer_cached) for r in good),
        errors=len(seen.requests) - len(good),
        evidence_kept=evidence_kept(gold, contexts) if gold else None,
        gold_answered=_gold_answered(gold, good) if gold else None,
    )


def evidence_kept(gold: Mapping[str, Gold], contexts: Mapping[str, str]) -> float | None:
    """Share of the questions of which a span of evidence, to the letter but for white space, is in the context."""
    kept = [
        any(_flat(span) in _flat(text) for span in gold[key].evidence)
        for key, text in contexts.items()
        if key in gold
    ]
    return sum(kept) / len(kept) if kept else None


def recorded_contexts(seen: Seen) -> dict[str, str]:
    """The context that each question was answered from, by question key, where texts were recorded."""
    found: dict[str, str] = {}
    for request in seen.requests:
        texts = [p.text for p in request.parts if p.role == "context" and p.text is not None]
        if request.question_key and texts:
            found.setdefault(request.question_key, "\n".join(texts))
    return found


def percentiles(values_ms: Sequence[float]) -> Percentiles:
    """P50, P95 and P99 by linear interpolation; zeros for no values."""
    p50, p95, p99 = np.quantile(values_ms, [0.5, 0.95, 0.99]) if values_ms else (0.0, 0.0, 0.0)
    return Percentiles(float(p50), float(p95), float(p99))


def _ratio(pairs: Sequence[tuple[Request, Request]], value: Callable[[Request], float | None]) -> Interval | None:
    """Before / after at P95 with an interval from resampling the pairs together."""
    rows = [(a, b) for x, y in pairs if (a := value(x)) is not None and (b := value(y)) is not None and b > 0]
    if not rows:
        return None
    table: Floats = np.asarray(rows, dtype=np.float64)
    picks = np.random.default_rng(SEED).integers(0, len(table), (RESAMPLES, len(table)))
    p95 = np.quantile(table[picks], 0.95, axis=1)
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(p95[:, 0] / p95[:, 1], [tail, 1 - tail])
    exact = np.quantile(table, 0.95, axis=0)
    return Interval(float(exact[0] / exact[1]), float(low), float(high))


MIN_PAIRS = 3
"""Fewer questions than this show nothing, whatever their times."""


def _verdict(speedup: Interval, pairs: int) -> ComparisonVerdict:
    if pairs < MIN_PAIRS or speedup.low <= 1.0 <= speedup.high:
        return "not-shown"
    return "better" if speedup.low > 1.0 else "worse"


def _answers(pairs: Sequence[tuple[Request, Request]], similarity: Similarity | None) -> AnswersCompared | None:
    texts = [(x.answer, y.answer) for x, y in pairs if x.answer is not None and y.answer is not None]
    if not texts:
        return None
    same = sum(_flat(a) == _flat(b) for a, b in texts)
    return AnswersCompared(len(texts), same, similarity(texts) if similarity else None)


def _gold_answered(gold: Mapping[str, Gold], requests: Sequence[Request]) -> float | None:
    found = [
        question_key(gold[r.question_key].answer) in question_key(r.answer)
        for r in requests
        if r.question_key in gold and r.answer is not None and r.question_key is not None
    ]
    return sum(found) / len(found) if found else None


def _mean(values: Sequence[int | None]) -> float | None:
    known = [v for v in values if v is not None]
    return sum(known) / len(known) if known else None


def _flat(text: str) -> str:
    return "".join(text.split())
