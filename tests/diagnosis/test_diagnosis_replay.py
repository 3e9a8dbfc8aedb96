"""Predictions against the truth: the toy service with the fault cured is really run, and its P95 compared."""

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from diagnosis_builders import Ask, Piece, Service, distinct, make_seen, passage, without
from diagnosis_patients import (
    N,
    answer_recomputed,
    in_a_row,
    overlap_waste,
    prefix_unstable,
    queue_saturated,
    queued,
    weights_reloaded,
)

from ragclinic.diagnosis.near import answered, percentile
from ragclinic.diagnosis.remedies import (
    ANSWER_CACHE,
    BUDGET_TOKENS,
    KEEP_LOADED,
    STABLE_ORDER,
    STREAMING,
    WHOLE_COMPILER,
    compiler,
)
from ragclinic.diagnosis.replay import COMPILE_MS_PER_TOKEN, Replay, predict
from ragclinic.diagnosis.types import Prediction
from ragclinic.signals.seen import Seen


def p95(seen: Seen) -> float:
    return percentile([r.total_ms for r in answered(seen)], 0.95)


def predicted(seen: Seen, changes: object) -> Prediction:
    found = predict(seen, changes)  # type: ignore[arg-type]
    assert found is not None
    assert found.low_ms <= found.p95_ms <= found.high_ms
    assert found.basis == "replay"
    return found


def merged(chunks: Sequence[Piece]) -> tuple[Piece, ...]:
    """Neighbours as one text without their borders."""
    ordered = sorted(chunks, key=lambda p: p.start or 0)
    text = ordered[0].text
    for piece in ordered[1:]:
        text = text[: (piece.start or 0) - (ordered[0].start or 0)] + piece.text
    return (replace(ordered[0], text=text),)


def test_merging_overlaps_is_predicted_as_it_comes_out() -> None:
    cured = make_seen([Ask(merged(in_a_row(i))) for i in range(N)])
    assert predicted(overlap_waste(), compiler(merge_overlap=True)).p95_ms == pytest.approx(p95(cured), rel=0.03)


def test_dropping_copies_is_predicted_as_it_comes_out() -> None:
    copies = [(*(Piece(passage(i), 0.6, f"d{k}", 0) for k in range(4)), *distinct(i + 50, 2)) for i in range(N)]
    cured = make_seen([Ask((chunks[0], *chunks[4:])) for chunks in copies])
    found = predicted(make_seen([Ask(c) for c in copies]), compiler(deduplicate=True))
    assert found.p95_ms == pytest.approx(p95(cured), rel=0.03)


def test_a_budget_is_predicted_as_it_comes_out_and_costs_its_own_time() -> None:
    cured = make_seen([Ask((Piece(passage(i, 400)),)) for i in range(N)])
    found = predicted(make_seen([Ask(distinct(i)) for i in range(N)]), compiler(budget_tokens=400))
    assert found.p95_ms == pytest.approx(p95(cured) + 900 * COMPILE_MS_PER_TOKEN, rel=0.03)


def test_a_stable_order_is_predicted_as_it_comes_out() -> None:
    asks = [Ask(distinct(i, 1), session=f"s{i // 4}") for i in range(N)]
    cured = make_seen(asks[1:], Service(stable=True, system_tokens=1500))  # but for the first, which is cold
    found = predicted(prefix_unstable(), STABLE_ORDER)
    assert found.p95_ms == pytest.approx(p95(replace(cured, requests=cured.requests[1:])), rel=0.05)


def test_a_kept_model_is_predicted_as_it_comes_out() -> None:
    cured = make_seen([Ask(distinct(i, 1, 200)) for i in range(N)])
    assert predicted(weights_reloaded(), KEEP_LOADED).p95_ms == pytest.approx(p95(cured), rel=0.03)


def test_an_answer_cache_takes_repeats_out_and_leaves_first_askings() -> None:
    seen = answer_recomputed()
    found = predicted(seen, ANSWER_CACHE)
    assert found.p95_ms == pytest.approx(p95(seen), rel=0.02)
    mostly = make_seen(
        [Ask(distinct(0, 2), question="how does the very first part work", cached_tokens=0) for _ in range(60)]
    )
    assert predicted(mostly, ANSWER_CACHE).p95_ms < 10


def test_an_answer_cache_that_runs_already_is_predicted_to_win_nothing() -> None:
    seen = replace(answer_recomputed(), settings={"cache.answers": True})
    assert predicted(seen, ANSWER_CACHE).p95_ms == pytest.approx(p95(seen))


def test_streaming_does_not_shorten_the_total() -> None:
    seen = weights_reloaded()
    assert predicted(seen, STREAMING).p95_ms == pytest.approx(p95(seen))


def test_shorter_work_shortens_the_queue_by_more_than_itself() -> None:
    work = make_seen([Ask(distinct(i, 6, 100), arrival_s=1.5 * i) for i in range(N)])
    seen = replace(queued(work, 1), slots=1)
    cured = queued(make_seen([Ask((Piece(passage(i, 400)),), arrival_s=1.5 * i) for i in range(N)]), 1)
    found = predicted(seen, compiler(budget_tokens=400))
    assert p95(seen) - found.p95_ms > 4 * 480  # far more than the 200 tokens that one request saves
    assert found.p95_ms == pytest.approx(p95(cured), rel=0.1)


def test_more_slots_may_give_nothing_and_the_interval_says_so() -> None:
    seen = queue_saturated(slots=1)
    found = predicted(seen, {"llm.slots": 4})
    assert found.p95_ms < 0.5 * p95(seen)
    assert found.high_ms >= p95(seen)


def test_nobody_asks_the_next_question_before_the_answer() -> None:
    # Two users who ask again at once keep one slot busy for ever: each waits for the other, however fast it is.
    work_ms = [r.total_ms for r in make_seen([Ask(distinct(i)) for i in range(24)]).requests]
    ends: list[float] = []
    asks = []
    for i in range(24):
        arrival_ms = ends[-2] + 1 if len(ends) > 1 else 0.0
        asks.append(Ask(distinct(i), session=f"s{i % 2}", arrival_s=arrival_ms / 1000))
        ends.append(max(arrival_ms, ends[-1] if ends else 0.0) + work_ms[i])
    seen = replace(queued(make_seen(asks, Service(history=False)), 1), slots=1)
    assert p95(seen) == pytest.approx(2 * work_ms[9], rel=0.05)
    cured = make_seen([Ask((Piece(passage(i, 400)),)) for i in range(9)]).requests[8]
    remedy = compiler(budget_tokens=400)
    assert predicted(seen, remedy).p95_ms == pytest.approx(2 * cured.total_ms, rel=0.1)
    crowd = without(seen, session=None)
    assert predicted(crowd, remedy).p95_ms < 1.5 * cured.total_ms


def test_all_remedies_together_are_played_at_once() -> None:
    asks = [Ask(in_a_row(i), session=f"s{i // 4}") for i in range(N)]
    sick = make_seen(asks, Service(stable=False, system_tokens=800, streamed=False, delivers_late=True))
    cured = make_seen(
        [replace(a, pieces=(Piece(passage(i, BUDGET_TOKENS)),)) for i, a in enumerate(asks)],
        Service(system_tokens=800),
    )
    found = predicted(sick, {**WHOLE_COMPILER, **STABLE_ORDER, **STREAMING})
    rest = replace(cured, requests=cured.requests[1:])
    assert found.p95_ms == pytest.approx(p95(rest) + 900 * COMPILE_MS_PER_TOKEN, rel=0.05)


def noisy(seed: int, asks: Sequence[Ask]) -> list[Ask]:
    rng = random.Random(seed)

    def factor() -> float:
        return 1 + abs(rng.gauss(0, 0.04)) + (0.4 * rng.random() if rng.random() < 0.1 else 0.0)

    return [replace(a, prefill_factor=f, decode_factor=f) for a in asks for f in [factor()]]


@pytest.mark.slow
def test_eighty_per_cent_intervals_hold_the_truth_most_of_the_time() -> None:
    held = 0
    for seed in range(10):
        sizes = [random.Random(100 * seed + i).choice((100, 150, 200)) for i in range(40)]
        sick = make_seen(noisy(seed, [Ask(distinct(i, 6, sizes[i])) for i in range(40)]))
        cured = make_seen(noisy(seed + 1000, [Ask((Piece(passage(i, 400)),)) for i in range(40)]))
        found = predicted(sick, compiler(budget_tokens=400))
        truth = p95(cured) + 900 * COMPILE_MS_PER_TOKEN
        held += found.low_ms <= truth <= found.high_ms
        assert found.p95_ms == pytest.approx(truth, rel=0.25)
    assert 6 <= held < 10  # of 40 such seeds it holds in 29; an interval that always held would be too wide


def test_predictions_are_the_same_each_time() -> None:
    assert predict(overlap_waste(), WHOLE_COMPILER) == predict(overlap_waste(), WHOLE_COMPILER)


def test_one_replay_answers_many_questions_as_each_alone() -> None:
    seen = prefix_unstable()
    replay = Replay(seen)
    for changes in (STABLE_ORDER, WHOLE_COMPILER, KEEP_LOADED):
        assert replay.predict(changes) == predict(seen, changes)


def test_nothing_is_predicted_without_requests_changes_or_a_latency_model() -> None:
    seen = overlap_waste()
    assert predict(Seen("empty"), WHOLE_COMPILER) is None
    assert predict(seen, {}) is None
    assert predict(without(seen, stages=()), WHOLE_COMPILER) is None
    assert predict(without(seen, stages=()), ANSWER_CACHE) is not None
