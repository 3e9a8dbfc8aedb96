"""The latency model: fitted from a recording, robust, and honest about what it cannot tell."""

import random
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from diagnosis_builders import START_NS, Ask, distinct, make_seen, prefill_ms
from hypothesis import given, settings
from hypothesis import strategies as st

from ragclinic.diagnosis.latency_model import ensemble, fit_latency
from ragclinic.diagnosis.robust import fit
from ragclinic.signals.seen import Request, Seen, Stage

Noise = Callable[[int], float]


def recording(
    sizes: list[tuple[int, int]], c: tuple[float, float, float], tpot: tuple[float, float], noise: Noise
) -> Seen:
    """Requests with (computed, cached) tokens whose times follow the formula but for a factor each."""
    found = []
    for number, (n, cached) in enumerate(sizes):
        context = n + cached
        prefill = noise(number) * (c[0] + c[1] * n + c[2] * n * (context - n / 2))
        decode = noise(number) * 31 * (tpot[0] + tpot[1] * context)
        stages = (Stage("prefill", 0, prefill), Stage("decode", prefill, prefill + decode))
        found.append(
            Request(
                f"r{number}",
                START_NS + number,
                prefill + decode,
                prompt_tokens=context,
                cached_tokens=cached,
                output_tokens=32,
                stages=stages,
            )
        )
    return Seen("test", requests=tuple(found))


SIZES = [(100 + 97 * i % 4000, 500 * (i % 3)) for i in range(40)]


@given(
    st.floats(0, 200), st.floats(0.05, 5), st.sampled_from([0.0, 1e-4, 5e-4]), st.floats(1, 40), st.floats(0, 0.01)
)
@settings(max_examples=40, deadline=None)
def test_exact_timings_give_the_formula_back(c0: float, c1: float, c2: float, a: float, b: float) -> None:
    model = fit_latency(recording(SIZES, (c0, c1, c2), (a, b), lambda _: 1.0))
    assert model is not None
    for n, context in ((150, 150), (800, 2800), (3500, 3500)):
        assert model.prefill_ms(n, context) == pytest.approx(c0 + c1 * n + c2 * n * (context - n / 2), rel=0.01)
        assert model.tpot_ms(context) == pytest.approx(a + b * context, rel=0.01)


def test_one_disturbed_request_in_five_does_not_move_the_fit() -> None:
    model = fit_latency(recording(SIZES, (20, 2.4, 1e-4), (15, 0.002), lambda i: 3.0 if i % 5 == 0 else 1.0))
    assert model is not None
    assert model.prefill_ms(1000) == pytest.approx(20 + 2400 + 1e-4 * 500_000, rel=0.02)
    assert model.tpot_ms(1000) == pytest.approx(17, rel=0.02)


@given(st.lists(st.tuples(st.integers(1, 5000), st.integers(0, 5000), st.floats(0.01, 1e5)), min_size=3))
@settings(max_examples=60, deadline=None)
def test_no_timing_whatever_makes_a_token_take_less_than_nothing(rows: list[tuple[int, int, float]]) -> None:
    seen = recording([(n, cached) for n, cached, _ in rows], (0, 1, 0), (1, 0), lambda i: rows[i][2])
    model = fit_latency(seen)
    assert model is not None
    assert min(model.prefill) >= 0
    assert model.tpot is not None
    assert min(model.tpot) >= 0
    assert np.isfinite(model.prefill).all()


def test_probes_tell_the_slope_where_all_prompts_are_long() -> None:
    model = fit_latency(make_seen([Ask(distinct(i)) for i in range(10)]))
    assert model is not None
    assert model.identified
    assert model.prefill_ms(300) == pytest.approx(prefill_ms(300), rel=0.02)


def test_prompts_of_one_length_leave_slope_and_constant_open() -> None:
    seen = recording([(1000 + i, 0) for i in range(20)], (0, 2, 0), (15, 0), lambda _: 1.0)
    model = fit_latency(seen)
    assert model is not None
    assert not model.identified
    assert model.prefill_ms(1000) == pytest.approx(2000, rel=0.02)
    short = [m.prefill_ms(100) for m in ensemble(seen)]
    assert min(short) == pytest.approx(200, rel=0.05)
    assert max(short) > 1000


def test_the_ensemble_is_the_same_each_time_and_spreads_with_the_noise() -> None:
    rng = random.Random(3)
    factors = [1 + rng.random() for _ in SIZES]
    noisy = recording(SIZES, (20, 2.4, 0), (15, 0.002), lambda i: factors[i])
    assert ensemble(noisy) == ensemble(noisy)
    spread = [m.prefill_ms(500) for m in ensemble(noisy)]
    exact = [m.prefill_ms(500) for m in ensemble(recording(SIZES, (20, 2.4, 0), (15, 0.002), lambda _: 1.0))]
    assert max(spread) - min(spread) > 10 * (max(exact) - min(exact))


def test_there_is_no_model_without_prefill_times_or_with_two_rows() -> None:
    seen = recording(SIZES, (20, 2.4, 0), (15, 0), lambda _: 1.0)
    silent = replace(seen, requests=tuple(replace(r, stages=()) for r in seen.requests))
    assert fit_latency(silent) is None
    assert ensemble(silent) == ()
    assert fit_latency(replace(seen, requests=seen.requests[:2])) is None


def test_without_answers_there_is_no_time_per_output_token() -> None:
    seen = recording(SIZES, (20, 2.4, 0), (15, 0), lambda _: 1.0)
    model = fit_latency(replace(seen, requests=tuple(replace(r, output_tokens=None) for r in seen.requests)))
    assert model is not None
    assert model.tpot_ms(100) is None


def test_a_cached_history_still_costs_attention() -> None:
    model = fit_latency(recording(SIZES, (0, 1, 5e-4), (15, 0.01), lambda _: 1.0))
    assert model is not None
    assert model.prefill_ms(200, 4200) > 1.5 * model.prefill_ms(200, 200)


def test_saved_time_is_of_computed_tokens_only_and_of_decode_as_well() -> None:
    seen = recording(SIZES, (0, 2, 0), (10, 0.01), lambda _: 1.0)
    model = fit_latency(seen)
    assert model is not None
    request = replace(seen.requests[0], prompt_tokens=1000, cached_tokens=900, output_tokens=11)
    assert model.saved_ms(request, 50) == pytest.approx(50 * 2 + 10 * 0.01 * 50, rel=0.05)
    assert model.saved_ms(request, 500) == model.saved_ms(request, 100)
    assert model.cached_ms(request, 50) == pytest.approx(100, rel=0.05)
    assert model.saved_ms(replace(request, prompt_tokens=None), 50) is None


@given(st.lists(st.floats(1, 1000), min_size=4, max_size=30), st.floats(0.1, 50))
@settings(max_examples=40, deadline=None)
def test_the_fit_scales_with_its_unit(sizes: list[float], factor: float) -> None:
    x = np.column_stack([np.ones(len(sizes)), np.array(sizes)])
    y = 5 + 2 * np.array(sizes)
    assert x @ fit(x, factor * y) == pytest.approx(factor * y, rel=1e-3)
