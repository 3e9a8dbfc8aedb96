"""Two runs of the same questions are told apart, or said not to be."""

import pytest

from ragclinic.diagnosis.compare import Gold, compare, evidence_kept, paired, percentiles, recorded_contexts
from ragclinic.signals.records import Part
from ragclinic.signals.seen import Request, Seen


def make_run(total_ms: list[float]) -> Seen:
    """A run of questions q0, q1, ... with these total times; the first byte comes at half time."""
    return Seen(
        "run",
        tuple(
            Request(f"t{i}", i, ms, ms / 2, question_key=f"q{i}", answer=f"answer {i}", prompt_tokens=100)
            for i, ms in enumerate(total_ms)
        ),
    )


def test_a_run_five_times_faster_is_better() -> None:
    found = compare(make_run([1000.0 + i for i in range(20)]), make_run([200.0 + i / 5 for i in range(20)]))
    assert found.verdict == "better"
    assert found.speedup_total_p95.value == pytest.approx(5.0, rel=0.01)
    assert found.speedup_ttft_p95 is not None
    assert found.speedup_ttft_p95.value == pytest.approx(5.0, rel=0.01)


def test_the_same_run_twice_shows_nothing() -> None:
    run = make_run([1000.0, 1100.0, 900.0, 1050.0, 980.0])
    assert compare(run, run).verdict == "not-shown"


def test_a_slower_run_is_worse() -> None:
    assert (
        compare(make_run([100.0 + i for i in range(9)]), make_run([500.0 + i for i in range(9)])).verdict
        == "worse"
    )


def test_two_questions_show_nothing_however_fast() -> None:
    assert compare(make_run([1000.0, 1001.0]), make_run([10.0, 11.0])).verdict == "not-shown"


def test_repeated_questions_are_paired_in_order_and_failures_left_out() -> None:
    before = [Request(f"b{i}", i, 1.0, question_key="same") for i in range(3)]
    after = [Request("a0", 0, 2.0, question_key="same", error="x"), Request("a1", 1, 3.0, question_key="same")]
    assert [(x.id, y.id) for x, y in paired(before, after)] == [("b0", "a1")]


def test_evidence_is_found_whatever_the_line_breaks() -> None:
    gold = {"q0": Gold(("elsewhere", "the list is kept"), "kept"), "q1": Gold(("never there",), "no")}
    assert evidence_kept(gold, {"q0": "and the\n   list is kept.", "q1": "other", "unknown": "x"}) == 0.5
    assert evidence_kept(gold, {}) is None


def test_contexts_come_from_the_recorded_parts_and_a_cached_repeat_keeps_the_first() -> None:
    asked = Request(
        "t", 0, 1.0, question_key="q", parts=(Part("t", 0, "system", 1, "s"), Part("t", 1, "context", 1, "c"))
    )
    again = Request("u", 1, 1.0, question_key="q", answer_cached=True)
    assert recorded_contexts(Seen("x", (asked, again))) == {"q": "c"}


def test_percentiles_interpolate() -> None:
    assert percentiles([0.0, 100.0]).p95 == pytest.approx(95.0)
    assert percentiles([]).p99 == 0.0


def test_failures_are_counted_and_do_not_enter_the_times() -> None:
    before = make_run([100.0] * 5)
    broken = Seen("x", (*before.requests, Request("e", 9, 99999.0, error="HTTP 500")))
    found = compare(broken, before)
    assert (found.before.requests, found.before.errors, found.before.total_ms.p99) == (6, 1, 100.0)
