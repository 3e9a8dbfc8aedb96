"""The two axes, and the heat map that joins them."""

import pytest
from diagnosis_builders import START_NS, Ask, Piece, distinct, make_seen, memory, passage
from hypothesis import given
from hypothesis import strategies as st

from ragclinic.diagnosis.axes import (
    MAX_SAMPLED,
    RequestAxes,
    axes,
    memory_pressure,
    request_axes,
    sampled,
    smoothed,
)
from ragclinic.diagnosis.heatmap import SIZE, heat, heat_map, plane, zone
from ragclinic.diagnosis.near import near_p95
from ragclinic.signals.seen import MemorySample, Request

share = st.floats(0, 1)


@given(share, share)
def test_heat_is_the_published_formula(memory_share: float, redundancy: float) -> None:
    w = max(0.3, 1 - 0.7 * redundancy)
    assert heat(memory_share, redundancy) == pytest.approx(w * memory_share * 100 + (1 - w) * redundancy * 100)
    assert -1e-9 <= heat(memory_share, redundancy) <= 100 + 1e-9


@given(share, share, share)
def test_more_memory_never_cools(redundancy: float, one: float, other: float) -> None:
    assert heat(min(one, other), redundancy) <= heat(max(one, other), redundancy) + 1e-9


@pytest.mark.parametrize(
    ("value", "expected"), [(0, "ideal"), (30, "ideal"), (30.01, "coupled"), (70, "coupled"), (70.01, "contended")]
)
def test_zones_end_at_30_and_at_70(value: float, expected: str) -> None:
    assert zone(value) == expected


def test_the_plane_has_64_by_64_values_with_redundancy_first() -> None:
    values = plane()
    assert len(values) == SIZE == 64
    assert {len(row) for row in values} == {64}
    assert values[0][63] == heat(1.0, 0.0) == 100.0
    assert values[63][0] == pytest.approx(heat(0.0, 1.0))


def test_the_map_sums_the_time_in_each_zone_and_leaves_unknown_requests_out() -> None:
    found = heat_map(
        [
            RequestAxes("a", 0.1, 0.0, 2.0),
            RequestAxes("b", 0.9, 0.1, 3.0),
            RequestAxes("c", None, 0.5, 9.0),
            RequestAxes("d", 0.5, None, 9.0),
        ]
    )
    assert found.seconds == {"ideal": 2.0, "coupled": 0.0, "contended": 3.0}
    assert [p.request_id for p in found.points] == ["a", "b"]
    assert found.share("contended") == 0.6


def test_a_map_without_requests_has_no_shares() -> None:
    assert heat_map([]).share("ideal") == 0.0


def test_memory_is_smoothed_over_eight_samples() -> None:
    assert smoothed([8.0] + [0.0] * 9)[7:9] == [1.0, 0.0]


def test_pressure_is_the_mean_while_the_request_ran() -> None:
    samples = [MemorySample(START_NS + i * 10**9, used_bytes=0.1 * i, total_bytes=1.0) for i in range(9)]
    request = Request("r", START_NS + 3 * 10**9, total_ms=2500)
    # Smoothed: 0.15, 0.2, 0.25 at seconds 3, 4 and 5.
    assert memory_pressure([request], samples)["r"] == pytest.approx(0.2)


def test_the_fuller_of_device_and_kv_cache_counts() -> None:
    request = Request("r", START_NS + 10**9, total_ms=2000)
    assert memory_pressure([request], memory(5, used=0.3, kv=0.8))["r"] == pytest.approx(0.8)


def test_a_request_between_two_samples_takes_the_nearest_one() -> None:
    request = Request("r", START_NS + 600_000_000, total_ms=10)
    assert memory_pressure([request], memory(5, used=0.4))["r"] == pytest.approx(0.4)


def test_a_request_far_from_any_sample_has_no_pressure() -> None:
    request = Request("r", START_NS + 60 * 10**9, total_ms=10)
    assert memory_pressure([request], memory(5)) == {}


def test_redundancy_is_one_for_copies_and_near_zero_for_distinct_chunks() -> None:
    seen = make_seen([Ask((Piece(passage(1)), Piece(passage(1)))), Ask(distinct(3)), Ask(distinct(4, count=1))])
    copies, apart, single = request_axes(seen.requests, ())
    assert copies.context_redundancy == 1.0
    assert apart.context_redundancy is not None
    assert apart.context_redundancy < 0.01
    assert single.context_redundancy is None
    assert axes((copies, apart, single)).context_redundancy == pytest.approx(0.5, abs=0.01)
    assert axes((copies,)).memory_pressure is None


def test_chinese_chunks_are_compared_by_pairs_of_characters() -> None:
    text = "前缀缓存只认从第一个词元起完全相同的部分，后面的内容即使一字不差也要全部重算。"
    seen = make_seen([Ask((Piece(text), Piece(text + "这是另一句话。")))])
    redundancy = request_axes(seen.requests, ())[0].context_redundancy
    assert redundancy is not None
    assert 0.7 < redundancy < 1.0


def test_of_many_requests_those_around_p95_and_a_fixed_random_rest_are_compared() -> None:
    requests = [Request(f"r{i}", START_NS + i, total_ms=float(i)) for i in range(1000)]
    near = near_p95(requests)
    assert near is not None
    chosen = sampled(requests, near)
    assert len(chosen) == MAX_SAMPLED
    assert {r.id for r in near.requests} <= {r.id for r in chosen}
    assert chosen == sampled(requests, near)
    assert [r.arrival_ns for r in chosen] == sorted(r.arrival_ns for r in chosen)
