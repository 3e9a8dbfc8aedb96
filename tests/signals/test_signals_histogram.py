import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragclinic.signals.histogram import Estimate, Histogram, histogram, over
from ragclinic.signals.records import Sample

# The edges of vLLM's end-to-end latency around the objective of 8 s, and 100 requests.
E2E = Histogram((2.5, 5.0, 10.0, math.inf), (50, 90, 98, 100))


def make_bucket(time_ns: int, edge: str, value: float, **labels: str) -> Sample:
    return Sample(time_ns, "vllm:e2e_request_latency_seconds_bucket", value, {"le": edge, **labels})


def test_a_percentile_is_interpolated_inside_its_bucket_and_carries_the_bucket_as_bounds() -> None:
    assert E2E.percentile(0.95) == Estimate(5.0 + 5.0 * 5 / 8, 5.0, 10.0)


def test_the_first_bucket_starts_at_zero() -> None:
    assert E2E.percentile(0.25) == Estimate(1.25, 0.0, 2.5)


def test_a_percentile_in_the_last_bucket_is_at_least_its_lower_edge() -> None:
    assert E2E.percentile(0.99) == Estimate(10.0, 10.0, math.inf)


def test_an_objective_inside_a_bucket_is_missed_by_an_interval_of_requests() -> None:
    found = E2E.share_above(8.0)
    assert found is not None
    assert (found.low, found.high) == pytest.approx((0.02, 0.10))
    assert found.value == pytest.approx(1 - (90 + 8 * 3 / 5) / 100)


def test_an_objective_on_an_edge_is_exact() -> None:
    assert E2E.share_above(5.0) == pytest.approx((0.10, 0.10, 0.10))


def test_no_values_have_no_percentile() -> None:
    empty = Histogram((1.0, math.inf), (0, 0))
    assert (empty.percentile(0.5), empty.share_above(1.0)) == (None, None)


def test_two_scrapes_leave_what_came_between_them() -> None:
    samples = [
        make_bucket(1, "1.0", 10),
        make_bucket(1, "+Inf", 10),
        make_bucket(2, "1.0", 10),
        make_bucket(2, "+Inf", 14),
    ]
    assert over(samples, "vllm:e2e_request_latency_seconds") == Histogram((1.0, math.inf), (0, 4))


def test_a_restart_between_scrapes_keeps_what_was_counted_since() -> None:
    samples = [make_bucket(1, "+Inf", 10), make_bucket(2, "+Inf", 3), make_bucket(3, "+Inf", 5)]
    assert over(samples, "vllm:e2e_request_latency_seconds") == Histogram((math.inf,), (3 + 2,))


def test_engines_are_added_up() -> None:
    samples = [make_bucket(1, "1.0", 2, engine="0"), make_bucket(1, "1.0", 3, engine="1")]
    assert over(samples, "vllm:e2e_request_latency_seconds") == Histogram((1.0, math.inf), (5, 5))


def test_series_with_other_edges_meet_at_the_edges_they_share() -> None:
    a, b = Histogram((1.0, 2.0, math.inf), (1, 2, 3)), Histogram((2.0, 4.0, math.inf), (5, 6, 7))
    assert a.plus(b) == Histogram((2.0, math.inf), (7, 10))


def test_broken_edges_and_counts_are_left_out() -> None:
    assert histogram([(math.nan, 1), (1.0, math.nan)]) is None
    assert over([make_bucket(1, "one", 1)], "vllm:e2e_request_latency_seconds") is None


@given(
    st.lists(st.tuples(st.floats(0.001, 1e4), st.floats(0, 1e6)), min_size=1, max_size=20),
    st.floats(0, 1),
)
def test_a_percentile_always_lies_in_its_bounds(buckets: list[tuple[float, float]], share: float) -> None:
    found = histogram(buckets)
    assert found is not None
    estimate = found.percentile(share)
    if estimate is not None:
        assert estimate.low <= estimate.value <= estimate.high
    above = found.share_above(8.0)
    if above is not None:
        assert above.low - 1e-9 <= above.value <= above.high + 1e-9
