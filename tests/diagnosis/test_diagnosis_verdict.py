"""The verdict: order, chains, honesty about what is missing, and time."""

import time
from dataclasses import replace

import pytest
from diagnosis_builders import START_NS, Ask, Piece, Service, distinct, make_seen, passage
from diagnosis_patients import SLO_MS, N, in_a_row, not_streaming, prefill_bound, weights_reloaded
from hypothesis import given
from hypothesis import strategies as st

from ragclinic.diagnosis import diagnose
from ragclinic.diagnosis.near import percentile
from ragclinic.diagnosis.say import in_language
from ragclinic.diagnosis.types import Axis, Finding, Remedy
from ragclinic.diagnosis.verdict import in_order
from ragclinic.signals.seen import Request, Seen


def finding(cause: str, share: float, leads_to: tuple[str, ...] = (), axis: Axis = "context") -> Finding:
    return Finding(cause, axis, 0.9, share, ("it is so, by 3",), (), leads_to, Remedy({}, ""))


def test_findings_stand_by_their_share_of_p95() -> None:
    order = in_order([finding("a", 0.1), finding("b", 0.5), finding("c", 0.3)])
    assert [f.cause for f in order] == ["b", "c", "a"]


def test_the_root_of_a_chain_stands_before_all_that_it_leads_to() -> None:
    order = in_order(
        [
            finding("kv", 0.6),
            finding("full", 0.3, ("kv",)),
            finding("copies", 0.1, ("full",)),
            finding("other", 0.2),
        ]
    )
    assert [f.cause for f in order] == ["copies", "full", "kv", "other"]


@given(st.lists(st.tuples(st.floats(0, 1), st.lists(st.integers(0, 6), max_size=3)), min_size=1, max_size=7))
def test_order_loses_no_finding_even_where_causes_lead_to_each_other(
    found: list[tuple[float, list[int]]],
) -> None:
    findings = [
        finding(f"c{i}", share, tuple(f"c{j}" for j in to if j != i)) for i, (share, to) in enumerate(found)
    ]
    order = in_order(findings)
    assert sorted(f.cause for f in order) == sorted(f.cause for f in findings)


def test_two_requests_without_spans_are_unknown_and_all_is_missing() -> None:
    for ms in (100.0, 20_000.0):
        seen = Seen("bare", requests=(Request("a", START_NS, ms), Request("b", START_NS + 10**10, ms)))
        diagnosis = diagnose(seen)
        assert (diagnosis.verdict, diagnosis.findings, diagnosis.requests) == ("unknown", (), 2)
        settles = [len(m.would_settle) for m in diagnosis.missing_signals]
        assert settles == sorted(settles, reverse=True)
        assert len(settles) > 5
        assert diagnosis.missing_signals[0].signal == "prefill and decode time"


def test_nothing_recorded_is_unknown() -> None:
    diagnosis = diagnose(Seen("empty"))
    assert (diagnosis.verdict, diagnosis.requests, diagnosis.latency_ms) == ("unknown", 0, None)
    assert diagnosis.missing_signals


def test_many_fast_requests_without_spans_are_healthy() -> None:
    requests = tuple(Request(f"r{i}", START_NS + i * 10**9, 900.0) for i in range(50))
    assert diagnose(Seen("bare", requests=requests)).verdict == "healthy"


def test_slow_for_a_reason_that_no_cause_explains_is_unknown() -> None:
    seen = make_seen([Ask(distinct(i, 1), before_ms=9000) for i in range(N)])
    diagnosis = diagnose(seen)
    assert diagnosis.verdict == "unknown"
    assert "none of the causes that can be found here explains it" in diagnosis.notes[-1]


def test_what_cannot_be_told_is_said_in_both_languages() -> None:
    asks = [Ask(distinct(i), prefill_factor=4 if i % 8 == 7 else 1) for i in range(N)]
    note = next(n for n in diagnose(make_seen(asks), SLO_MS).notes if n.startswith("prefill-bound: cannot tell"))
    assert in_language(note, "zh").startswith("prefill-bound：无法判定，慢请求的 prefill")


def test_more_than_one_failed_request_in_twenty_is_not_healthy() -> None:
    asks = [Ask(distinct(i, 1), error="429 too many requests" if i % 10 == 0 else None) for i in range(N)]
    diagnosis = diagnose(make_seen(asks))
    assert diagnosis.verdict == "unknown"
    assert "4 of 32 requests failed" in diagnosis.notes[0]
    assert diagnosis.requests == 28


def test_probes_are_no_users_requests() -> None:
    seen = prefill_bound()
    assert diagnose(seen, SLO_MS).requests == N
    asked = replace(seen, requests=(*seen.requests, replace(seen.requests[0], id="x", kind="probe", total_ms=1e9)))
    assert diagnose(asked, SLO_MS).latency_ms == diagnose(seen, SLO_MS).latency_ms


def test_the_budget_of_a_diagnosis_sums_to_its_p95() -> None:
    diagnosis = diagnose(weights_reloaded(), SLO_MS)
    assert diagnosis.latency_ms is not None
    assert sum(s.p95_ms for s in diagnosis.budget) == pytest.approx(diagnosis.latency_ms.p95)
    totals = [r.total_ms for r in weights_reloaded().requests]
    assert diagnosis.latency_ms.p50 == percentile(totals, 0.5)


def test_memory_and_context_together_are_coupled() -> None:
    asks = [Ask(in_a_row(i), load_ms=1500 if i % 4 == 3 else 0) for i in range(N)]
    diagnosis = diagnose(make_seen(asks), SLO_MS)
    assert {f.axis for f in diagnosis.findings} >= {"memory", "context"}
    assert diagnosis.verdict == "coupled"


def test_a_fault_that_costs_next_to_nothing_is_a_note_and_no_finding() -> None:
    asks = [
        Ask((*in_a_row(i, count=2, words=40, overlap=10), *distinct(i, 1, 60)), load_ms=30000) for i in range(N)
    ]
    diagnosis = diagnose(make_seen(asks), SLO_MS)
    assert [f.cause for f in diagnosis.findings] == ["weights-reloaded"]
    assert any(note.startswith("overlap-waste is there") for note in diagnosis.notes)


def test_few_requests_make_a_finding_less_sure() -> None:
    seen = not_streaming()
    few = replace(seen, requests=seen.requests[:3])
    assert diagnose(few, SLO_MS).findings[0].confidence < diagnose(seen, SLO_MS).findings[0].confidence


def test_a_diagnosis_is_the_same_each_time() -> None:
    assert diagnose(weights_reloaded(), SLO_MS) == diagnose(weights_reloaded(), SLO_MS)


def test_a_recording_that_keeps_no_settings_and_one_of_ours_are_diagnosed_alike() -> None:
    seen = make_seen([Ask((Piece(passage(i)), Piece(passage(i)), *distinct(i, 2))) for i in range(N)])
    ours = replace(seen, settings={"llm.keep_loaded": True, "compiler.enabled": False})
    assert [f.cause for f in diagnose(ours, SLO_MS).findings] == [f.cause for f in diagnose(seen, SLO_MS).findings]


@pytest.mark.slow
def test_five_thousand_requests_are_diagnosed_in_seconds() -> None:
    chunks = [distinct(i) for i in range(60)]
    asks = [Ask(chunks[i % 60], session=f"s{i // 4}", gap_s=0.1, queue_ms=50) for i in range(5000)]
    seen = make_seen(asks, Service(stable=False, system_tokens=400))
    began = time.process_time()
    diagnosis = diagnose(seen, SLO_MS)
    assert diagnosis.requests == 5000
    assert any("Chunks were compared in 112 of 5000" in note for note in diagnosis.notes)
    # About 1.5 s on a quiet core; many times that would be a loop over all chunks.
    assert time.process_time() - began < 10
