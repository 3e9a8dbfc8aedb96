"""Every cause's decision as a table: at, just under and over each threshold; more fault is never less sure."""

from typing import Any

import pytest

from ragclinic.diagnosis.causes import (
    answer_recomputed,
    context_overfull,
    context_redundant,
    decode_bound,
    not_streaming,
    overlap_waste,
    prefill_bound,
    prefix_unstable,
    queue_saturated,
    tail_chunks_idle,
    weights_reloaded,
)
from ragclinic.diagnosis.causes.healthy import is_healthy
from ragclinic.diagnosis.turns import Growth
from ragclinic.diagnosis.types import CannotTell, Found, NotFound

OVERFULL = context_overfull.Measured(
    fill=0.85,
    prompt_tokens=6963,
    window_tokens=8192,
    cached_tokens=0,
    at_window_share=0.0,
    saved_share=0.4,
    identified=True,
    requests=50,
)
REDUNDANT = context_redundant.Measured(
    redundancy=0.3,
    redundancy_apart=0.3,
    duplicate_tokens=900,
    context_tokens=3000,
    neighbours_known=True,
    saved_share=0.2,
    identified=True,
    requests=50,
)
OVERLAP = overlap_waste.Measured(
    overlap_tokens=300,
    context_tokens=3000,
    configured_tokens=128,
    saved_share=0.08,
    identified=True,
    requests=50,
)
TAIL = tail_chunks_idle.Measured(
    chunks=6,
    mass=0.92,
    tail_tokens=2000,
    context_tokens=3000,
    tail_used=0.0,
    saved_share=0.5,
    identified=True,
    requests=50,
)
PREFIX = prefix_unstable.Measured(
    prompt_tokens=4000,
    shareable=2000,
    common=10,
    cached=10,
    lost=1990,
    role="volatile",
    token=10,
    same_chunks=False,
    constant=None,
    saved_share=0.4,
    identified=True,
    requests=50,
)
COUNTED = PREFIX._replace(
    shareable=None,
    common=None,
    role=None,
    token=None,
    constant=Growth(10, 1.0, 1600.0, 3000.0, 9000.0, {}),
)
RECOMPUTED = answer_recomputed.Measured(
    requests=100, repeats=30, cost_ratio=0.95, most_asked=7, all_share=0.3, near_share=0.25
)
STREAMING = not_streaming.Measured(
    late_share=1.0,
    first_byte_ms=5000,
    first_token_ms=1000,
    decode_ms=4000,
    decode_share=0.8,
    asked_to_stream=0.0,
    requests=50,
)
RELOADED = weights_reloaded.Measured(
    requests=100,
    reloads=20,
    load_ms=5000,
    load_share=0.8,
    pause_before_load_s=400,
    pause_otherwise_s=2,
    window_changed_share=0.0,
    by_memory=False,
)
PREFILL = prefill_bound.Measured(
    prefill_share=0.8, prefill_ms=6000, computed_tokens=3000, prompt_tokens=3100, slow_factor=1.0, requests=50
)
DECODE = decode_bound.Measured(
    decode_share=0.8,
    decode_ms=6000,
    output_tokens=400,
    tpot_ms=15,
    slow_factor=1.0,
    answer_tokens=380,
    requests=50,
)
QUEUED = queue_saturated.Measured(
    queue_share=0.6,
    queue_ms=6000,
    waited_share=0.7,
    busy_share=1.0,
    running=4,
    waiting=9,
    kv_used=0.5,
    requests=50,
)

TABLE: list[tuple[Any, Any, dict[str, Any], type]] = [
    (context_overfull, OVERFULL, {}, Found),
    (context_overfull, OVERFULL, {"fill": 0.75}, NotFound),
    (context_overfull, OVERFULL, {"fill": 0.751}, Found),
    (context_overfull, OVERFULL, {"fill": 0.99, "at_window_share": 0.5}, CannotTell),
    (context_overfull, OVERFULL, {"fill": 0.99, "at_window_share": 0.49}, Found),
    (context_redundant, REDUNDANT, {}, Found),
    (context_redundant, REDUNDANT, {"redundancy_apart": 0.10, "duplicate_tokens": 0}, Found),
    (context_redundant, REDUNDANT, {"redundancy_apart": 0.099, "duplicate_tokens": 0}, NotFound),
    (context_redundant, REDUNDANT, {"redundancy_apart": 0.05, "duplicate_tokens": 450}, Found),
    (context_redundant, REDUNDANT, {"redundancy_apart": 0.05, "duplicate_tokens": 449}, NotFound),
    (overlap_waste, OVERLAP, {}, Found),
    (overlap_waste, OVERLAP, {"overlap_tokens": 120}, Found),
    (overlap_waste, OVERLAP, {"overlap_tokens": 119}, NotFound),
    (overlap_waste, OVERLAP, {"overlap_tokens": 0, "context_tokens": 0}, NotFound),
    (tail_chunks_idle, TAIL, {}, Found),
    (tail_chunks_idle, TAIL, {"mass": 0.87}, Found),
    (tail_chunks_idle, TAIL, {"mass": 0.869}, NotFound),
    (tail_chunks_idle, TAIL, {"chunks": 3}, NotFound),
    (tail_chunks_idle, TAIL, {"tail_used": 0.25}, Found),
    (tail_chunks_idle, TAIL, {"tail_used": 0.26}, NotFound),
    (prefix_unstable, PREFIX, {}, Found),
    (prefix_unstable, PREFIX, {"lost": 200}, Found),
    (prefix_unstable, PREFIX, {"lost": 199}, NotFound),
    (prefix_unstable, PREFIX, {"prompt_tokens": 300, "lost": 32}, Found),
    (prefix_unstable, PREFIX, {"prompt_tokens": 300, "lost": 31}, NotFound),
    (prefix_unstable, PREFIX, {"common": 2000, "cached": 0, "lost": 0}, NotFound),
    (prefix_unstable, PREFIX, {"cached": None}, Found),
    (prefix_unstable, COUNTED, {}, Found),
    (prefix_unstable, COUNTED, {"constant": COUNTED.constant._replace(cached_tokens=20)}, CannotTell),  # type: ignore[union-attr]
    (prefix_unstable, COUNTED, {"constant": COUNTED.constant._replace(constant_share=0.4)}, NotFound),  # type: ignore[union-attr]
    (prefix_unstable, COUNTED, {"lost": 199}, NotFound),
    (answer_recomputed, RECOMPUTED, {}, Found),
    (answer_recomputed, RECOMPUTED, {"repeats": 10}, Found),
    (answer_recomputed, RECOMPUTED, {"repeats": 9}, NotFound),
    (answer_recomputed, RECOMPUTED, {"cost_ratio": 0.3}, Found),
    (answer_recomputed, RECOMPUTED, {"cost_ratio": 0.29}, NotFound),
    (not_streaming, STREAMING, {}, Found),
    (not_streaming, STREAMING, {"late_share": 0.5}, Found),
    (not_streaming, STREAMING, {"late_share": 0.49}, NotFound),
    (not_streaming, STREAMING, {"decode_share": 0.05}, Found),
    (not_streaming, STREAMING, {"decode_share": 0.049}, NotFound),
    (weights_reloaded, RELOADED, {}, Found),
    (weights_reloaded, RELOADED, {"reloads": 2}, Found),
    (weights_reloaded, RELOADED, {"reloads": 1}, NotFound),
    (weights_reloaded, RELOADED, {"reloads": 2, "requests": 101}, NotFound),
    (prefill_bound, PREFILL, {}, Found),
    (prefill_bound, PREFILL, {"prefill_share": 0.5}, Found),
    (prefill_bound, PREFILL, {"prefill_share": 0.499}, NotFound),
    (prefill_bound, PREFILL, {"slow_factor": 2.5}, CannotTell),
    (prefill_bound, PREFILL, {"slow_factor": 2.4}, Found),
    (decode_bound, DECODE, {}, Found),
    (decode_bound, DECODE, {"decode_share": 0.5}, Found),
    (decode_bound, DECODE, {"decode_share": 0.499}, NotFound),
    (decode_bound, DECODE, {"slow_factor": 2.0}, CannotTell),
    (decode_bound, DECODE, {"slow_factor": 1.9}, Found),
    (queue_saturated, QUEUED, {}, Found),
    (queue_saturated, QUEUED, {"queue_share": 0.3}, Found),
    (queue_saturated, QUEUED, {"queue_share": 0.299}, NotFound),
    (queue_saturated, QUEUED, {"waited_share": 0.2}, Found),
    (queue_saturated, QUEUED, {"waited_share": 0.19}, NotFound),
    (queue_saturated, QUEUED, {"busy_share": 0.5}, Found),
    (queue_saturated, QUEUED, {"busy_share": 0.49}, CannotTell),
    (queue_saturated, QUEUED, {"kv_used": 0.94}, Found),
    (queue_saturated, QUEUED, {"kv_used": 0.95}, CannotTell),
    (queue_saturated, QUEUED, {"kv_used": None}, Found),
]


@pytest.mark.parametrize(("module", "base", "changes", "expected"), TABLE)
def test_the_decision_turns_at_its_threshold(
    module: Any, base: Any, changes: dict[str, Any], expected: type
) -> None:
    assert isinstance(module.decide(base._replace(**changes)), expected)


RISING: list[tuple[Any, Any, str, list[float]]] = [
    (context_overfull, OVERFULL, "fill", [0.76, 0.8, 0.9, 0.97]),
    (context_redundant, REDUNDANT, "redundancy_apart", [0.1, 0.2, 0.4, 0.9]),
    (context_redundant, REDUNDANT, "duplicate_tokens", [450, 900, 1500, 2500]),
    (overlap_waste, OVERLAP, "overlap_tokens", [120, 200, 450, 900]),
    (tail_chunks_idle, TAIL, "mass", [0.87, 0.9, 0.95, 1.0]),
    (prefix_unstable, PREFIX, "lost", [200, 800, 1600, 3000]),
    (prefix_unstable, COUNTED, "lost", [200, 800, 1600, 3000]),
    (answer_recomputed, RECOMPUTED, "repeats", [10, 20, 40, 90]),
    (not_streaming, STREAMING, "late_share", [0.5, 0.7, 0.9, 1.0]),
    (weights_reloaded, RELOADED, "reloads", [2, 10, 20, 99]),
    (prefill_bound, PREFILL, "prefill_share", [0.5, 0.6, 0.8, 0.95]),
    (decode_bound, DECODE, "decode_share", [0.5, 0.6, 0.8, 0.95]),
    (queue_saturated, QUEUED, "queue_share", [0.3, 0.5, 0.7, 0.95]),
]


@pytest.mark.parametrize(("module", "base", "field", "values"), RISING)
def test_more_of_the_fault_is_never_less_sure(module: Any, base: Any, field: str, values: list[float]) -> None:
    answers = [module.decide(base._replace(**{field: value})) for value in values]
    sure = [a.confidence for a in answers]
    assert sure == sorted(sure)
    assert 0.5 < sure[0] < sure[-1] < 1


@pytest.mark.parametrize(("module", "base", "weaker"), [
    (context_redundant, REDUNDANT, {"neighbours_known": False}),
    (tail_chunks_idle, TAIL, {"tail_used": None}),
    (prefix_unstable, PREFIX, {"cached": None}),
    (context_overfull, OVERFULL, {"requests": 3}),
    (queue_saturated, QUEUED, {"requests": 3}),
])  # fmt: skip
def test_weaker_evidence_is_less_sure(module: Any, base: Any, weaker: dict[str, Any]) -> None:
    assert module.decide(base._replace(**weaker)).confidence < module.decide(base).confidence


VARIANTS: list[tuple[Any, Any, dict[str, Any], str]] = [
    (prefix_unstable, PREFIX, {}, "volatile-early"),
    (prefix_unstable, PREFIX, {"role": "context"}, "context-early"),
    (prefix_unstable, PREFIX, {"role": "context", "same_chunks": True}, "chunk-order"),
    (not_streaming, STREAMING, {}, "application"),
    (not_streaming, STREAMING, {"asked_to_stream": None}, "application"),
    (not_streaming, STREAMING, {"asked_to_stream": 1.0}, "proxy"),
    (weights_reloaded, RELOADED, {}, "keep-alive"),
    (weights_reloaded, RELOADED, {"pause_before_load_s": 3}, "evicted"),
    (weights_reloaded, RELOADED, {"pause_before_load_s": 3, "reloads": 99}, "keep-alive"),
    (weights_reloaded, RELOADED, {"window_changed_share": 0.9}, "option-changed"),
    (decode_bound, DECODE, {}, "answer"),
    (decode_bound, DECODE, {"answer_tokens": None}, "answer"),
    (decode_bound, DECODE, {"answer_tokens": 60}, "thinking"),
    (queue_saturated, QUEUED, {}, "overload"),
    (queue_saturated, QUEUED, {"running": 1}, "concurrency"),
]


@pytest.mark.parametrize(("module", "base", "changes", "variant"), VARIANTS)
def test_the_variant_decides_the_remedy(module: Any, base: Any, changes: dict[str, Any], variant: str) -> None:
    m = base._replace(**changes)
    assert module.decide(m).variant == variant
    others = [v for mod, b, c, v in VARIANTS if mod is module and v != variant]
    assert all(module.remedy(m, other) != module.remedy(m, variant) for other in others if other != "context-early"
               and variant != "context-early")  # fmt: skip


@pytest.mark.parametrize(
    ("p95", "answered", "failed", "expected"),
    [
        (8000, 100, 0, True),
        (8001, 100, 0, False),
        (10, 5, 0, True),
        (10, 4, 0, False),
        (10, 95, 5, True),
        (10, 94, 6, False),
    ],
)
def test_healthy_is_within_the_objective_over_enough_answers(
    p95: float, answered: int, failed: int, expected: bool
) -> None:
    assert is_healthy(p95, 8000, answered, failed) is expected


def test_a_mostly_cached_long_prompt_is_said_to_cost_nevertheless() -> None:
    answer = context_overfull.decide(OVERFULL._replace(cached_tokens=6000))
    assert isinstance(answer, Found)
    assert "6,000 of them come from the prefix cache" in answer.evidence[1]


def test_a_long_common_prefix_that_is_not_reused_points_to_the_engine() -> None:
    answer = prefix_unstable.decide(PREFIX._replace(common=2000, cached=0, lost=0))
    assert isinstance(answer, NotFound)
    assert "prefix-cache-unusable" in answer.because


def test_likeness_that_neighbours_explain_points_to_their_overlap() -> None:
    answer = context_redundant.decide(REDUNDANT._replace(redundancy_apart=0.02, duplicate_tokens=0))
    assert isinstance(answer, NotFound)
    assert "overlap-waste" in answer.because
