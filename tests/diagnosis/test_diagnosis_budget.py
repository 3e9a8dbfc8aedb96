"""The budget of P95 and the requests that it is made of."""

import math

import pytest
from diagnosis_builders import START_NS
from hypothesis import given, settings
from hypothesis import strategies as st

from ragclinic.diagnosis.budget import CONNECT, EVENT_LOOP, GATEWAY, UNACCOUNTED, budget, with_gaps
from ragclinic.diagnosis.near import MAX_NEAR, near_p95, percentile
from ragclinic.signals.seen import Request, Stage

NAMES = ("embed", "search", "assemble", "load", "queue", "prefill", "decode", "deliver")


def request(number: int, *runs: tuple[str, float, float], total_ms: float) -> Request:
    return Request(f"r{number}", START_NS + number, total_ms, stages=tuple(Stage(*run) for run in runs))


@st.composite
def requests(draw: st.DrawFn) -> list[Request]:
    found = []
    for number in range(draw(st.integers(1, 20))):
        at, stages = 0.0, []
        for name in draw(st.lists(st.sampled_from(NAMES), max_size=6)):
            start = at + draw(st.floats(0, 500))
            at = start + draw(st.floats(0, 5000))
            stages.append(Stage(name, start, at))
        total = at + draw(st.floats(0, 500))
        found.append(Request(f"r{number}", START_NS + number, total, stages=tuple(stages)))
    return found


@given(requests())
@settings(max_examples=30, deadline=None)
def test_the_stages_sum_to_p95_whatever_was_recorded(recorded: list[Request]) -> None:
    found = budget(recorded)
    assert found is not None
    assert found.p95_ms == pytest.approx(percentile([r.total_ms for r in recorded], 0.95))
    if found.stages:
        assert math.fsum(s.p95_ms for s in found.stages) == pytest.approx(found.p95_ms, rel=1e-9)
        assert math.fsum(s.share for s in found.stages) == pytest.approx(1.0, rel=1e-9)
    assert all(s.p95_ms >= -1e-9 * found.p95_ms for s in found.stages)
    assert len({s.stage for s in found.stages}) == len(found.stages)


@given(requests())
@settings(max_examples=30, deadline=None)
def test_stages_and_gaps_are_the_whole_of_a_request(recorded: list[Request]) -> None:
    for one in recorded:
        assert math.fsum(s.duration_ms for s in with_gaps(one)) == pytest.approx(one.total_ms, abs=1e-6)


def test_gaps_are_named_by_where_they_lie() -> None:
    recorded = [
        request(
            i,
            ("embed", 100, 200),
            ("search", 250, 300),
            ("prefill", 450, 800),
            ("decode", 850, 900),
            total_ms=1000,
        )
        for i in range(3)
    ]
    found = budget(recorded)
    assert found is not None
    assert {s.stage: round(s.p95_ms) for s in found.stages} == {
        EVENT_LOOP: 100,
        "embed": 100,
        "search": 50,
        CONNECT: 150,
        "prefill": 350,
        "decode": 50,
        GATEWAY: 100,
        UNACCOUNTED: 100,
    }


def test_stages_stand_in_the_order_in_which_they_run_and_unaccounted_last() -> None:
    found = budget([request(0, ("prefill", 300, 600), ("decode", 600, 900), total_ms=1000)])
    assert found is not None
    assert [s.stage for s in found.stages] == [CONNECT, "prefill", "decode", GATEWAY]


def test_a_gap_below_one_per_cent_gets_no_name() -> None:
    found = budget([request(0, ("embed", 5, 500), ("prefill", 500, 1000), total_ms=1000)])
    assert found is not None
    assert [s.stage for s in found.stages] == ["embed", "prefill", UNACCOUNTED]


def test_without_stages_all_time_is_unaccounted() -> None:
    found = budget([request(i, total_ms=100.0 * i) for i in range(1, 4)])
    assert found is not None
    assert [(s.stage, s.share) for s in found.stages] == [(UNACCOUNTED, 1.0)]


def test_there_is_no_budget_without_requests() -> None:
    assert budget([]) is None


def test_only_the_requests_around_p95_count() -> None:
    slow = [request(i, ("load", 0, 1000), total_ms=1000 + i) for i in range(180, 200)]
    fast = [request(i, ("decode", 0, 10), total_ms=10) for i in range(80)]
    found = budget([*fast, *slow])
    assert found is not None
    assert "decode" not in {s.stage for s in found.stages}


def test_weights_sum_to_one_and_grow_towards_p95() -> None:
    near = near_p95([request(i, total_ms=float(i)) for i in range(1, 202)])
    assert near is not None
    assert sum(near.weights) == pytest.approx(1.0)
    heaviest = near.requests[near.weights.index(max(near.weights))]
    assert heaviest.total_ms == pytest.approx(191.0)
    assert min(r.total_ms for r in near.requests) >= 181


def test_three_requests_count_even_where_few_were_recorded() -> None:
    near = near_p95([request(i, total_ms=float(i)) for i in range(1, 6)])
    assert near is not None
    assert len(near.requests) == 3


def test_of_very_many_requests_a_bounded_number_is_looked_at() -> None:
    near = near_p95([request(i, total_ms=float(i)) for i in range(1, 5000)])
    assert near is not None
    assert MAX_NEAR / 2 < len(near.requests) <= MAX_NEAR


def test_a_stage_that_only_some_requests_have_counts_as_zero_in_the_others() -> None:
    near = near_p95(
        [
            request(0, ("load", 0, 400), ("decode", 400, 1000), total_ms=1000),
            request(1, ("decode", 0, 1000), total_ms=1000),
            request(2, total_ms=1000),
        ]
    )
    assert near is not None
    load = near.stage_ms("load")
    assert load is not None
    assert 0 < load < 400
    assert near.stage_ms("rerank") == 0.0
