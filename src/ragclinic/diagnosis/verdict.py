"""The diagnosis: every cause is asked, what was found is weighed and put in order, and what was missing is said.

Above the objective, findings stand by their share of P95, but the root of a chain before what it leads to. Within
it, nothing is looked for. Where the signals do not tell, the verdict is `unknown`, and the missing ones stand in
the order of how many causes each would settle.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ragclinic.diagnosis.axes import axes, request_axes, sampled
from ragclinic.diagnosis.budget import budget_of
from ragclinic.diagnosis.causes import CAUSES
from ragclinic.diagnosis.causes.healthy import MIN_REQUESTS, is_healthy
from ragclinic.diagnosis.near import P95, answered, near_p95, percentile
from ragclinic.diagnosis.pieces import keyed
from ragclinic.diagnosis.replay import Replay
from ragclinic.diagnosis.say import in_language, say
from ragclinic.diagnosis.types import (
    Answer,
    Budget,
    CannotTell,
    Cause,
    Diagnosis,
    Finding,
    Found,
    Latency,
    Missing,
    MissingSignal,
    Signal,
    Verdict,
)
from ragclinic.signals.seen import Request, Seen

DEFAULT_SLO_MS = 8000.0
MIN_SHARE = 0.02
"""Share of P95 (0..1) below which a fault is real and yet no reason for the slowness: a note, no finding."""
BOTH_SHARE = 0.10
"""Share of P95 (0..1) that memory and context must each take for a coupled verdict."""


NO_CAUSE = "P95 is above the objective, and none of the causes that can be found here explains it."
NO_CAUSE_ZH = "P95 超过目标，但这里能识别的病因都不能解释它。"


class Examined(NamedTuple):
    """A cause, what it measured (None where signals are missing), and what it answered."""

    cause: Cause[Any]
    measured: Any
    answer: Answer


def diagnose(seen: Seen, slo_ms: float = DEFAULT_SLO_MS) -> Diagnosis:
    """The diagnosis of everything seen, against an objective for P95 of the total time."""
    requests = answered(seen)
    near = near_p95(requests)
    failed = sum(1 for r in seen.requests if r.kind == "user" and r.error is not None)
    notes = [*seen.notes, *_failed_note(failed, len(requests))]
    if near is None:
        examined = [examine(cause, seen) for cause in CAUSES]
        return Diagnosis(
            "unknown", slo_ms, 0, None, missing_signals=missing_signals(examined, seen.missing), notes=tuple(notes)
        )
    chosen = sampled(requests, near)
    seen = replace(seen, requests=keyed(seen.requests, {r.id: None for r in chosen}))
    chosen = sampled(answered(seen), near)
    base = Diagnosis(
        verdict="healthy",
        slo_ms=slo_ms,
        requests=len(requests),
        latency_ms=latency(requests),
        budget=budget_of(near).stages,
        axes=axes(request_axes(chosen, seen.memory)),
        notes=tuple(notes),
    )
    if is_healthy(near.p95_ms, slo_ms, len(requests), failed):
        return base
    examined = [examine(cause, seen) for cause in CAUSES]
    notes += _undecided(examined)
    if len(chosen) < len(requests):
        notes.append(_sample_note(len(chosen), len(requests)))
    found: tuple[Finding, ...] = ()
    if near.p95_ms > slo_ms:
        found, small = _findings(examined, budget_of(near), Replay(seen))
        notes += small
        if not found:
            notes.append(say(NO_CAUSE, NO_CAUSE_ZH))
    elif len(requests) < MIN_REQUESTS:
        notes.append(_few_note(len(requests)))
    return replace(
        base,
        verdict=_verdict(found),
        findings=found,
        missing_signals=missing_signals(examined, seen.missing),
        notes=tuple(notes),
    )


def examine(cause: Cause[Any], seen: Seen) -> Examined:
    """What the cause says of this recording; where signals are missing, that it cannot tell."""
    measured = cause.measure(seen)
    if isinstance(measured, Missing):
        return Examined(cause, None, CannotTell(measured.signals))
    return Examined(cause, measured, cause.decide(measured))


def latency(requests: Sequence[Request]) -> Latency:
    """Percentiles of the total time."""
    totals = [r.total_ms for r in requests]
    return Latency(percentile(totals, 0.5), percentile(totals, P95), percentile(totals, 0.99))


def missing_signals(
    examined: Sequence[Examined], lacked: Mapping[str, str] | None = None
) -> tuple[MissingSignal, ...]:
    """The signals that causes lacked, those that settle the most causes first, then what else the files lack."""
    settles: dict[Signal, list[str]] = {}
    for one in examined:
        if isinstance(one.answer, CannotTell):
            for signal in one.answer.missing:
                settles.setdefault(signal, []).append(one.cause.id)
    order = sorted(settles, key=lambda signal: -len(settles[signal]))
    named = [MissingSignal(signal.name, tuple(settles[signal]), signal.how) for signal in order]
    return (*named, *(MissingSignal(name, (), how) for name, how in (lacked or {}).items()))


def in_order(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """By share of P95, but whatever leads to a finding stands before it."""
    by_share = sorted(findings, key=lambda f: -(f.share_of_p95 or 0.0))
    placed: dict[str, Finding] = {}

    def place(finding: Finding, below: frozenset[str]) -> None:
        for root in by_share:
            if finding.cause in root.leads_to and root.cause not in below:
                place(root, below | {finding.cause})
        placed.setdefault(finding.cause, finding)

    for finding in by_share:
        place(finding, frozenset())
    return tuple(placed.values())


def _findings(
    examined: Sequence[Examined], budget: Budget, replay: Replay
) -> tuple[tuple[Finding, ...], list[str]]:
    """The findings in order, and notes on those too small to matter."""
    weighed: dict[str, Finding] = {}
    notes: list[str] = []
    for cause, measured, answer in examined:
        if not isinstance(answer, Found):
            continue
        share = cause.share(measured, budget).value
        if share < MIN_SHARE:
            notes.append(_small_note(cause.id, share))
            continue
        weighed[cause.id] = _finding(cause, measured, answer, share)
    explained = {cause.id for cause, _, _ in examined if any(other in weighed for other in cause.unless)}
    kept = [finding for key, finding in weighed.items() if key not in explained]
    return tuple(_predicted(finding, replay) for finding in in_order(kept)), notes


def _finding(cause: Cause[Any], measured: Any, answer: Found, share: float) -> Finding:
    return Finding(
        cause=cause.id,
        axis=cause.axis,
        confidence=answer.confidence,
        share_of_p95=share,
        evidence=answer.evidence,
        signals_used=tuple(signal.name for signal in cause.needs),
        leads_to=cause.leads_to,
        remedy=cause.remedy(measured, answer.variant),
        variant=answer.variant,
    )


def _predicted(finding: Finding, replay: Replay) -> Finding:
    prediction = replay.predict(finding.remedy.settings)
    if prediction is None:
        return finding
    return replace(
        finding,
        predicted_p95_ms=prediction.p95_ms,
        predicted_p95_low_ms=prediction.low_ms,
        predicted_p95_high_ms=prediction.high_ms,
        basis=prediction.basis,
    )


def _verdict(findings: Sequence[Finding]) -> Verdict:
    if not findings:
        return "unknown"
    shares: Mapping[str, float] = {
        axis: max((f.share_of_p95 or 0.0 for f in findings if f.axis == axis), default=0.0)
        for axis in ("memory", "context")
    }
    if min(shares.values()) >= BOTH_SHARE and findings[0].axis in shares:
        return "coupled"
    return findings[0].axis


def _undecided(examined: Sequence[Examined]) -> list[str]:
    return [
        say(
            "{cause}: cannot tell, {why}.",
            "{cause}：无法判定，{why_zh}。",
            cause=cause.id,
            why=answer.because,
            why_zh=in_language(answer.because, "zh"),
        )
        for cause, _, answer in examined
        if isinstance(answer, CannotTell) and answer.because
    ]


def _failed_note(failed: int, answered_count: int) -> list[str]:
    if not failed:
        return []
    return [
        say(
            "{failed} of {all} requests failed; they are left out of every number here.",
            "{all} 个请求中有 {failed} 个失败，未计入这里的任何数字。",
            failed=failed,
            all=failed + answered_count,
        )
    ]


def _few_note(requests: int) -> str:
    return say(
        "{n} requests are within the objective: too few to call the service healthy.",
        "{n} 个请求都在目标之内，但太少，不足以判定服务健康。",
        n=requests,
    )


def _sample_note(chosen: int, requests: int) -> str:
    return say(
        "Chunks were compared in {chosen} of {requests} requests: those around P95 and a random rest.",
        "只比较了 {requests} 个请求中 {chosen} 个的检索块：P95 附近的，以及随机抽取的其余部分。",
        chosen=chosen,
        requests=requests,
    )


def _small_note(cause: str, share: float) -> str:
    return say(
        "{cause} is there, but its remedy would take away only {share:.1%} of P95.",
        "{cause} 存在，但对策只能减少 P95 的 {share:.1%}。",
        cause=cause,
        share=share,
    )
