"""The causes on whole services: each patient is told from its look-alikes, nothing is claimed without evidence."""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from diagnosis_builders import (
    Ask,
    Piece,
    Service,
    decode_ms,
    distinct,
    hashed,
    make_seen,
    memory,
    passage,
    prefill_ms,
    without,
)
from diagnosis_patients import PATIENTS, SLO_MS, N, in_a_row, memory_of_reloads, queue_saturated, queued

import ragclinic
from ragclinic.diagnosis import diagnose
from ragclinic.diagnosis.budget import budget
from ragclinic.diagnosis.causes import CAUSES
from ragclinic.diagnosis.say import Sentence
from ragclinic.diagnosis.types import CannotTell, Diagnosis, Found, Interval, NotFound
from ragclinic.diagnosis.verdict import examine
from ragclinic.engine.settings import Settings
from ragclinic.report.text import table
from ragclinic.signals.seen import Request, Seen, Stage

BY_ID = {cause.id: cause for cause in CAUSES}
ROOT = Path(__file__).parents[2]
CHINESE = re.compile(r"[\u4e00-\u9fff]")


@cache
def patient(cause: str) -> Seen:
    return PATIENTS[cause]()


@cache
def diagnosed(cause: str) -> Diagnosis:
    return diagnose(patient(cause), SLO_MS)


def found(seen: Seen) -> list[str]:
    return [f.cause for f in diagnose(seen, SLO_MS).findings]


def stripped(seen: Seen, *stages: str) -> Seen:
    """The same without these stages: their time is a gap."""
    return replace(
        seen,
        requests=tuple(
            replace(r, stages=tuple(s for s in r.stages if s.name not in stages)) for r in seen.requests
        ),
    )


def unread(seen: Seen) -> Seen:
    """The same with nothing kept of prompts and chunks but counts."""
    return replace(
        seen,
        requests=tuple(
            replace(
                r,
                question=None,
                answer=None,
                chunks=tuple(replace(c, text=None, keys=None) for c in r.chunks),
                parts=tuple(replace(p, text=None, token_keys=None) for p in r.parts),
            )
            for r in seen.requests
        ),
    )


# --- the contract of the registry


def test_ids_are_unique_and_equal_to_their_file_names() -> None:
    folder = Path(ragclinic.__file__).parent / "diagnosis" / "causes"
    files = {p.stem.replace("_", "-") for p in folder.glob("[!_]*.py")}
    assert len(BY_ID) == len(CAUSES)
    assert set(BY_ID) | {"healthy"} == files


def test_every_cause_has_a_patient_a_name_in_both_languages_and_a_page_in_the_handbook() -> None:
    assert set(PATIENTS) == set(BY_ID)
    names = {f"cause.{cause}" for cause in (*BY_ID, "healthy")}
    assert names <= set(table("en")) & set(table("zh"))
    assert {p.stem for p in (ROOT / "docs/zh/causes").glob("*.md")} >= set(BY_ID) | {"healthy"}


@pytest.mark.parametrize("cause", sorted(BY_ID))
def test_what_a_cause_leads_to_and_yields_to_are_ids_of_causes(cause: str) -> None:
    names = (*BY_ID[cause].leads_to, *BY_ID[cause].unless)
    assert all(re.fullmatch("[a-z]+(-[a-z]+)*", name) and name != cause for name in names)
    assert set(BY_ID[cause].unless) <= set(BY_ID)
    assert BY_ID[cause].needs


@pytest.mark.parametrize("cause", sorted(BY_ID))
@pytest.mark.parametrize(
    "seen",
    [Seen("nothing"), Seen("bare", requests=(Request("a", 0, 9000.0), Request("b", 10**10, 9500.0)))],
    ids=["no requests", "requests without any signal"],
)
def test_without_signals_a_cause_cannot_tell_and_says_what_it_lacks(cause: str, seen: Seen) -> None:
    answer = examine(BY_ID[cause], seen).answer
    assert isinstance(answer, CannotTell)
    assert answer.missing
    assert set(answer.missing) <= set(BY_ID[cause].needs)
    assert all(isinstance(signal.how, Sentence) for signal in answer.missing)


@pytest.mark.parametrize("cause", sorted(BY_ID))
def test_a_finding_has_numbers_for_evidence_in_both_languages_and_settings_that_exist(cause: str) -> None:
    finding = diagnosed(cause).findings[0]
    assert finding.evidence
    for sentence in (*finding.evidence, finding.remedy.why):
        assert isinstance(sentence, Sentence)
        assert CHINESE.search(sentence.zh)
    assert all(re.search(r"\d", sentence) for sentence in finding.evidence)
    assert Settings().with_changes(finding.remedy.settings)


@pytest.mark.parametrize("cause", sorted(BY_ID))
def test_a_share_is_bounded_and_never_more_than_all(cause: str) -> None:
    examined = examine(BY_ID[cause], patient(cause))
    whole = budget(patient(cause).requests)
    assert whole is not None
    assert isinstance(examined.answer, Found)
    share: Interval = BY_ID[cause].share(examined.measured, whole)
    assert 0 <= share.low <= share.value <= share.high <= 1


# --- patients


@pytest.mark.parametrize("cause", sorted(PATIENTS))
def test_the_first_finding_is_the_cause_that_was_put_in(cause: str) -> None:
    diagnosis = diagnosed(cause)
    assert diagnosis.findings[0].cause == cause
    assert diagnosis.verdict == BY_ID[cause].axis
    shares = [f.share_of_p95 or 0 for f in diagnosis.findings]
    assert shares == sorted(shares, reverse=True)


@pytest.mark.parametrize(
    "cause",
    [
        "context-overfull",
        "context-redundant",
        "overlap-waste",
        "prefix-unstable",
        "tail-chunks-idle",
        "weights-reloaded",
    ],
)
def test_a_share_is_what_the_remedy_is_predicted_to_take_away(cause: str) -> None:
    diagnosis = diagnosed(cause)
    finding = diagnosis.findings[0]
    assert diagnosis.latency_ms is not None
    assert finding.predicted_p95_ms is not None
    # A budget costs some time of its own, and ranks the two needed chunks of an idle tail as well.
    slack = 0.12 if finding.remedy.settings.get("compiler.budget_tokens") else 0.04
    taken = 1 - finding.predicted_p95_ms / diagnosis.latency_ms.p95
    assert finding.share_of_p95 == pytest.approx(taken, abs=slack)


def test_the_share_of_an_unstreamed_answer_is_its_decode() -> None:
    diagnosis = diagnosed("not-streaming")
    decode = next(s.share for s in diagnosis.budget if s.stage == "decode")
    assert diagnosis.findings[0].share_of_p95 == pytest.approx(decode, abs=0.02)


def test_the_share_of_a_queue_is_its_waiting() -> None:
    diagnosis = diagnosed("queue-saturated")
    queue = next(s.share for s in diagnosis.budget if s.stage == "queue")
    assert diagnosis.findings[0].share_of_p95 == pytest.approx(queue, abs=0.02)


@pytest.mark.parametrize("cause", sorted(PATIENTS))
def test_within_the_objective_nothing_is_found(cause: str) -> None:
    diagnosis = diagnose(patient(cause), 60_000.0)
    assert (diagnosis.verdict, diagnosis.findings, diagnosis.missing_signals) == ("healthy", (), ())


@pytest.mark.parametrize("cause", sorted(PATIENTS))
def test_hashed_content_gives_the_same_findings_as_text(cause: str) -> None:
    kept = diagnose(hashed(patient(cause)), SLO_MS)
    assert [f.cause for f in kept.findings] == [f.cause for f in diagnosed(cause).findings]
    for one, other in zip(kept.findings, diagnosed(cause).findings, strict=True):
        assert one.share_of_p95 == pytest.approx(other.share_of_p95)


KEY_EVIDENCE: dict[str, Callable[[Seen], Seen]] = {
    "context-overfull": lambda s: without(s, window_tokens=None),
    "context-redundant": unread,
    "overlap-waste": lambda s: replace(
        s,
        requests=tuple(
            replace(r, chunks=tuple(replace(c, doc=None, start=None, end=None) for c in r.chunks))
            for r in hashed(s).requests
        ),
    ),
    "tail-chunks-idle": lambda s: replace(
        s,
        requests=tuple(replace(r, chunks=tuple(replace(c, score=None) for c in r.chunks)) for r in s.requests),
    ),
    "prefix-unstable": lambda s: without(s, parts=(), session=None),
    "answer-recomputed": lambda s: without(s, question=None, question_key=None),
    "not-streaming": lambda s: without(s, first_byte_ms=None),
    "weights-reloaded": lambda s: stripped(s, "load"),
    "prefill-bound": unread,
    "decode-bound": lambda s: without(s, output_tokens=None),
    "queue-saturated": lambda s: stripped(s, "queue"),
}


@pytest.mark.parametrize("cause", sorted(KEY_EVIDENCE))
def test_without_its_key_evidence_the_finding_goes_and_the_signal_is_named(cause: str) -> None:
    diagnosis = diagnose(KEY_EVIDENCE[cause](patient(cause)), SLO_MS)
    assert cause not in [f.cause for f in diagnosis.findings]
    assert cause in {c for missing in diagnosis.missing_signals for c in missing.would_settle}


def test_every_cause_is_tried_without_its_evidence() -> None:
    assert set(KEY_EVIDENCE) == set(BY_ID)


# --- look-alikes: what deceives


def test_neighbours_that_share_much_are_overlap_and_not_redundancy() -> None:
    seen = make_seen([Ask(in_a_row(i, overlap=100)) for i in range(N)])
    diagnosis = diagnose(seen, SLO_MS)
    assert [f.cause for f in diagnosis.findings][:1] == ["overlap-waste"]
    assert "context-redundant" not in [f.cause for f in diagnosis.findings]
    assert diagnosis.axes.context_redundancy is not None
    assert diagnosis.axes.context_redundancy > 0.10


def test_the_same_place_retrieved_twice_is_redundancy_and_not_overlap() -> None:
    twice = [
        tuple(Piece(p.text, p.score, "doc", 0) for p in distinct(i, 1) * 3) + distinct(i + 100, 3)
        for i in range(N)
    ]
    causes = found(make_seen([Ask(chunks) for chunks in twice]))
    assert causes[0] == "context-redundant"
    assert "overlap-waste" not in causes


def test_a_large_overlap_that_no_prompt_shows_costs_nothing() -> None:
    seen = make_seen([Ask(distinct(i)) for i in range(N)], settings={"chunking.overlap_tokens": 256})
    assert "overlap-waste" not in found(seen)


def test_redundancy_that_fills_the_window_stands_before_the_full_window() -> None:
    copies = [tuple(Piece(passage(i), 0.6, f"d{k}", 0) for k in range(3)) + distinct(i + 90, 3) for i in range(N)]
    diagnosis = diagnose(make_seen([Ask(c, window=1100) for c in copies]), SLO_MS)
    causes = [f.cause for f in diagnosis.findings]
    assert causes.index("context-redundant") < causes.index("context-overfull")
    assert "context-overfull" in diagnosis.findings[0].leads_to


def test_prompts_that_stick_at_the_window_may_have_lost_text() -> None:
    seen = without(make_seen([Ask(distinct(i)) for i in range(N)]), prompt_tokens=971, window_tokens=972)
    assert isinstance(examine(BY_ID["context-overfull"], seen).answer, CannotTell)


def test_flat_scores_are_no_idle_tail_but_needed_prompts() -> None:
    assert found(patient("prefill-bound")) == ["prefill-bound"]


def test_a_tail_that_answers_draw_on_is_not_idle_whatever_the_scores() -> None:
    asks = []
    for i in range(N):
        pieces = tuple(
            replace(p, score=s) for p, s in zip(distinct(i), (0.9, 0.9, 0.1, 0.0, 0.0, 0.0), strict=True)
        )
        asks.append(Ask(pieces, answer=" ".join(pieces[4].text.split()[:12])))
    assert "tail-chunks-idle" not in found(make_seen(asks))


def test_an_engine_that_reuses_no_prefix_is_not_an_unstable_prompt() -> None:
    asks = [Ask(distinct(i, 1), session=f"s{i // 4}", cached_tokens=0) for i in range(N)]
    seen = make_seen(asks, Service(stable=True, system_tokens=1500))
    answer = examine(BY_ID["prefix-unstable"], seen).answer
    assert isinstance(answer, NotFound)
    assert "prefix-cache-unusable" in answer.because
    assert "prefix-unstable" not in found(seen)


def test_different_chunks_for_different_questions_are_no_instability() -> None:
    asks = [Ask(distinct(i), session=f"s{i // 4}") for i in range(N)]
    assert "prefix-unstable" not in found(make_seen(asks, Service(stable=True, system_tokens=300)))


def test_cached_tokens_that_stay_constant_while_prompts_grow_tell_without_the_prompts() -> None:
    asks = [Ask(session=f"s{i // 8}", answer=passage(i, 600)) for i in range(N)]
    grown = make_seen(asks, Service(system_tokens=400))
    seen = replace(
        unread(grown),
        requests=tuple(
            _recomputing(r, 400) if r.cached_tokens and i % 8 else r for i, r in enumerate(unread(grown).requests)
        ),
    )
    diagnosis = diagnose(seen, SLO_MS)
    assert diagnosis.findings[0].cause == "prefix-unstable"
    assert "cached tokens stay at 400" in diagnosis.findings[0].evidence[0]


def _recomputing(request: Request, cached: int) -> Request:
    prompt = request.prompt_tokens or 0
    prefill = prefill_ms(prompt - cached)
    end = prefill + decode_ms(40, prompt)
    return replace(
        request,
        cached_tokens=cached,
        total_ms=end,
        stages=(Stage("prefill", 0.0, prefill), Stage("decode", prefill, end)),
    )


def test_nothing_cached_and_no_prompts_seen_may_be_the_engine_as_well() -> None:
    asks = [Ask(session=f"s{i // 8}", answer=passage(i, 600), cached_tokens=0) for i in range(N)]
    assert isinstance(examine(BY_ID["prefix-unstable"], unread(make_seen(asks))).answer, CannotTell)


def test_repeats_that_the_engines_own_cache_answers_fast_are_left_alone() -> None:
    asks = [
        Ask(
            distinct(i % 4, 4),
            question=f"how does part number {i % 4} work",
            output_tokens=8,
            prefill_factor=1 if i < 4 else 0.02,
        )
        for i in range(N)
    ]
    answer = examine(BY_ID["answer-recomputed"], make_seen(asks)).answer
    assert isinstance(answer, NotFound)
    assert "caches already" in answer.because


def test_the_same_follow_up_in_many_conversations_is_no_repeated_question() -> None:
    asks = [Ask(distinct(i, 2), question="and why is that so", session=f"s{i}") for i in range(N)]
    assert "answer-recomputed" not in found(make_seen(asks))


def test_long_streamed_answers_are_long_and_not_unstreamed() -> None:
    assert found(patient("decode-bound")) == ["decode-bound"]


def test_a_first_byte_late_because_of_prefill_is_streamed_all_the_same() -> None:
    seen = make_seen([Ask(distinct(i), output_tokens=12) for i in range(N)])
    near_end = [r.first_byte_ms or 0 for r in seen.requests if (r.first_byte_ms or 0) > 0.9 * r.total_ms]
    assert len(near_end) == N
    assert "not-streaming" not in found(seen)


def test_a_proxy_that_buffers_is_told_by_the_clients_clock() -> None:
    asks = [Ask(distinct(i, 1), output_tokens=200) for i in range(N)]
    finding = diagnose(make_seen(asks, Service(streamed=True, delivers_late=True)), SLO_MS).findings[0]
    assert (finding.cause, finding.variant) == ("not-streaming", "proxy")
    assert finding.remedy.settings == {}


def test_a_slow_first_request_is_a_start_and_no_reload() -> None:
    asks = [Ask(distinct(i, 1), load_ms=20000 if i == 0 else 0) for i in range(N)]
    assert "weights-reloaded" not in found(make_seen(asks, settings={"llm.keep_loaded": True}))


def test_a_slow_first_request_with_flat_memory_is_no_load_at_all() -> None:
    asks = [Ask(distinct(i, 1), prefill_factor=20 if i == 0 else 1) for i in range(N)]
    assert "weights-reloaded" not in found(make_seen(asks, memory=memory(60)))


def test_reloads_are_found_by_the_memory_where_no_stage_tells() -> None:
    seen = patient("weights-reloaded")
    by_memory = replace(
        stripped(seen, "load"), memory=memory_of_reloads(seen, lambda r: r.stage_ms("load") is not None)
    )
    assert found(by_memory)[0] == "weights-reloaded"


@pytest.mark.parametrize(
    "cause", ["context-overfull", "context-redundant", "overlap-waste", "tail-chunks-idle", "prefix-unstable"]
)
def test_needed_prompts_are_not_blamed_where_the_context_has_a_fault(cause: str) -> None:
    assert "prefill-bound" not in [f.cause for f in diagnosed(cause).findings]


def test_prefill_that_is_long_for_its_tokens_is_not_blamed_on_the_prompts_length() -> None:
    seen = make_seen([Ask(distinct(i), prefill_factor=4 if i % 8 == 7 else 1) for i in range(N)])
    answer = examine(BY_ID["prefill-bound"], seen).answer
    assert isinstance(answer, CannotTell)
    assert found(seen) == []


def test_slow_tokens_are_not_blamed_on_long_answers() -> None:
    asks = [Ask(distinct(i, 1), output_tokens=100, decode_factor=6 if i % 8 == 7 else 1) for i in range(N)]
    assert isinstance(examine(BY_ID["decode-bound"], make_seen(asks)).answer, CannotTell)


def test_thinking_is_told_from_a_long_answer() -> None:
    asks = [Ask(distinct(i, 1), output_tokens=400, answer="Yes, on Monday.") for i in range(N)]
    assert diagnose(make_seen(asks), SLO_MS).findings[0].variant == "thinking"


def test_one_slot_is_a_setting_and_several_are_a_full_server() -> None:
    one = diagnose(queue_saturated(slots=1), SLO_MS).findings[0]
    assert (one.cause, one.variant, one.remedy.settings) == ("queue-saturated", "concurrency", {"llm.slots": 4})
    full = diagnosed("queue-saturated").findings[0]
    assert (full.variant, full.remedy.settings) == ("overload", {})


def test_a_single_burst_is_no_saturation() -> None:
    asks = [Ask(distinct(i, 1), arrival_s=500 if i in (20, 21, 22, 23) else 5.0 * i) for i in range(60)]
    seen = queued(make_seen(sorted(asks, key=lambda a: a.arrival_s or 0)), 1)
    assert "queue-saturated" not in found(seen)


def test_waiting_with_a_full_kv_cache_is_not_blamed_on_the_arrivals() -> None:
    seen = replace(patient("queue-saturated"), memory=memory(60, kv=0.98))
    assert isinstance(examine(BY_ID["queue-saturated"], seen).answer, CannotTell)


def test_waiting_in_the_application_is_no_queue_at_the_server() -> None:
    seen = make_seen([Ask(distinct(i, 1), before_ms=3000) for i in range(N)])
    diagnosis = diagnose(seen, SLO_MS)
    assert "queue-saturated" not in [f.cause for f in diagnosis.findings]
    assert {s.stage: s.share for s in diagnosis.budget}["event-loop"] > 0.7


def test_a_healthy_but_busy_service_gets_no_finding() -> None:
    asks = [
        Ask(in_a_row(i % 9, count=3), arrival_s=1.0 * i, question=f"how does part number {i % 9} work")
        for i in range(60)
    ]
    busy = replace(queued(make_seen(asks), 1), memory=memory(120, used=0.97))
    diagnosis = diagnose(busy, slo_ms=diagnose(busy, 1.0).latency_ms.p95 + 1)  # type: ignore[union-attr]
    assert (diagnosis.verdict, diagnosis.findings) == ("healthy", ())
    assert diagnosis.axes.memory_pressure == pytest.approx(0.97)
