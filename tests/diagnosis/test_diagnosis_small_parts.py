"""The small decisions that others are built on: use, prices, queues, repeats, loads, score mass, sentences."""

import doctest
import importlib
import pkgutil
from dataclasses import replace

import pytest
from diagnosis_builders import START_NS, Ask, Piece, Service, distinct, make_seen, memory, passage
from diagnosis_patients import in_a_row, memory_of_reloads, queue_saturated, weights_reloaded
from hypothesis import given, settings
from hypothesis import strategies as st

import ragclinic.diagnosis
from ragclinic.diagnosis.confidence import from_few, graded
from ragclinic.diagnosis.latency_model import fit_latency
from ragclinic.diagnosis.loads import loads
from ragclinic.diagnosis.prices import price_chunks
from ragclinic.diagnosis.queueing import Job, busy_share, most_running, most_waiting, slots_of, waits
from ragclinic.diagnosis.repeats import repeats
from ragclinic.diagnosis.say import in_language, say
from ragclinic.diagnosis.score_mass import floor_score, mass_of_first
from ragclinic.diagnosis.use import used
from ragclinic.signals.seen import Request, Stage


@pytest.mark.parametrize(
    "name", [m.name for m in pkgutil.walk_packages(ragclinic.diagnosis.__path__, "ragclinic.diagnosis.")]
)
def test_the_examples_in_the_docstrings_hold(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


# --- which chunks an answer used


def test_the_chunk_that_brings_the_answers_words_was_used() -> None:
    texts = ["Apples grow on trees", "The Paris office opened in March 1998 downtown", "Bananas are yellow"]
    assert used("It opened in March 1998", "When did the office open?", texts) == (False, True, False)


def test_a_second_copy_was_not_used() -> None:
    text = "The Paris office opened in March 1998 downtown"
    assert used("It opened in March 1998", "When did it open?", [text, text]) == (True, False)


def test_chinese_answers_are_told_by_pairs_of_characters() -> None:
    texts = ["苹果长在树上", "报销单应在三十天之内交给财务部门审核"]
    assert used("三十天之内交给财务部门", "报销单何时提交？", texts) == (False, True)


@pytest.mark.parametrize("answer", [None, "Yes", "What office?"])
def test_an_answer_without_words_of_its_own_tells_nothing(answer: str | None) -> None:
    assert used(answer, "What office is it?", ["the office in Paris"]) is None


def test_use_is_unknown_where_a_text_was_not_kept() -> None:
    assert used("March 1998 in Paris", "When?", ["March 1998", None]) is None


# --- the price of a chunk


def test_the_price_of_a_chunk_has_its_time_its_memory_and_what_it_shares() -> None:
    seen = make_seen([Ask(in_a_row(i, count=3, words=100, overlap=25)) for i in range(6)])
    request = seen.requests[3]
    prices = price_chunks(request, fit_latency(seen), kv_bytes_per_token=1000.0)
    assert [p.rank for p in prices] == [0, 1, 2]
    assert all(p.prefill_ms == pytest.approx(240, rel=0.05) for p in prices)
    held_s = (request.stages[-1].end_ms - request.stages[-2].start_ms) / 1000
    assert prices[0].kv_byte_seconds == pytest.approx(100 * 1000 * held_s)
    # The middle one meets a neighbour on either side; each shares a quarter of itself with one.
    assert [p.shared_tokens for p in prices] == pytest.approx([25, 25, 25], rel=0.1)


def test_a_copy_shares_all_of_itself() -> None:
    text = passage(3)
    seen = make_seen([Ask((Piece(text), Piece(text), Piece(passage(4)))) for _ in range(4)])
    assert [p.shared_tokens for p in price_chunks(seen.requests[0], None)] == [150, 150, 0]


def test_prices_say_which_chunk_was_used_and_leave_open_what_is_unknown() -> None:
    chunks = distinct(1, 3)
    answer = " ".join(chunks[1].text.split()[:10])
    seen = make_seen([Ask(chunks, answer=answer)])
    prices = price_chunks(seen.requests[0], None)
    assert [p.used for p in prices] == [False, True, False]
    assert {p.prefill_ms for p in prices} == {None}
    assert {p.kv_byte_seconds for p in prices} == {None}
    unheard = replace(seen.requests[0], answer=None)
    assert {p.used for p in price_chunks(unheard, None)} == {None}


# --- waiting for a slot


def test_one_slot_serves_in_order_of_arrival() -> None:
    jobs = [Job(0, 0, 10, 0), Job(1, 0, 10, 0), Job(2, 0, 10, 0)]
    assert waits(jobs, 1) == [0, 9, 18]
    assert waits(jobs, 2) == [0, 0, 8]
    assert waits(jobs, 3) == [0, 0, 0]


def test_a_job_without_service_waits_for_nothing() -> None:
    assert waits([Job(0, 0, 10, 0), Job(1, 0, 0, 0)], 1) == [0, 0]


def test_a_user_asks_again_only_after_the_answer() -> None:
    # With a fast server the second question comes after 12, with a slow one after 102: it never waits for itself.
    for service in (10, 100):
        assert waits([Job(0, 0, service, 1), Job(500, 0, service, 1, follows=0, think_ms=1)], 1) == [0, 0]


@given(st.lists(st.tuples(st.floats(0, 1000), st.floats(0, 100)), min_size=1, max_size=30), st.integers(1, 4))
@settings(max_examples=60, deadline=None)
def test_a_slot_more_never_makes_the_waiting_longer(work: list[tuple[float, float]], slots: int) -> None:
    jobs = [Job(arrival, 0, service, 0) for arrival, service in work]
    assert sum(waits(jobs, slots + 1)) <= sum(waits(jobs, slots)) + 1e-6
    assert min(waits(jobs, slots)) >= 0


def test_running_and_waiting_are_counted_from_the_stages() -> None:
    seen = queue_saturated(slots=2)
    assert most_running(seen.requests) == 2
    assert most_waiting(seen.requests) > 5
    assert slots_of(replace(seen, slots=None)) == 2
    assert slots_of(replace(seen, slots=7)) == 7
    waited = [r for r in seen.requests if r.stage_ms("queue")]
    assert busy_share(waited, seen.requests) == pytest.approx(1.0)


def test_the_server_was_idle_while_a_lonely_request_queued() -> None:
    alone = Request("a", START_NS, 900, stages=(Stage("queue", 0, 800), Stage("prefill", 800, 900)))
    assert busy_share([alone], [alone]) == 0.0
    assert busy_share([], [alone]) == 0.0


# --- the same question again


def test_a_question_asked_again_is_a_repeat_whatever_its_case_and_punctuation() -> None:
    seen = make_seen([Ask(question="How does the cache work?"), Ask(question="how does the cache work")])
    assert {k: v.id for k, v in repeats(seen.requests).items()} == {"r00001": "r00000"}


@pytest.mark.parametrize(
    "again",
    [
        Ask(question="How does the cache work?", tenant="other"),
        Ask(question="How does the cache work?", gap_s=1000),
        Ask(question="How does the cache work?", arrival_s=1.001),
        Ask(question="How does the queue work?"),
    ],
)
def test_another_tenant_a_late_or_a_simultaneous_asking_is_none(again: Ask) -> None:
    assert repeats(make_seen([Ask(question="How does the cache work?"), again]).requests) == {}


@pytest.mark.parametrize("question", ["and why is that so", "它是怎么做到的", "go on"])
def test_what_leans_on_the_conversation_is_no_repeat(question: str) -> None:
    assert repeats(make_seen([Ask(question=question), Ask(question=question)]).requests) == {}


def test_an_expired_answer_is_computed_and_kept_again() -> None:
    question = "How does the cache work?"
    seen = make_seen([Ask(question=question), Ask(question=question, gap_s=1000), Ask(question=question)])
    assert {k: v.id for k, v in repeats(seen.requests).items()} == {"r00002": "r00001"}


# --- when the model was loaded


def test_the_first_load_does_not_count() -> None:
    seen = make_seen([Ask(load_ms=5000 if i == 0 else 0) for i in range(5)])
    found = loads(seen)
    assert found is not None
    assert found.after_first == {}


def test_loads_are_seen_in_the_memory_where_no_stage_tells() -> None:
    seen = weights_reloaded()
    hidden = replace(
        seen,
        requests=tuple(replace(r, stages=tuple(s for s in r.stages if s.name != "load")) for r in seen.requests),
        memory=memory_of_reloads(seen, lambda r: bool(r.stage_ms("load"))),
    )
    found = loads(hidden)
    assert found is not None
    assert found.by_memory
    told = {r.id for r in seen.requests if r.stage_ms("load")}
    assert set(found.after_first) == told
    assert min(found.after_first.values()) > 4000


def test_flat_memory_means_no_load_and_no_memory_means_unknown() -> None:
    seen = make_seen([Ask(distinct(i, 1)) for i in range(6)])
    flat = loads(replace(seen, memory=memory(20)))
    assert flat is not None
    assert flat.after_first == {}
    assert loads(seen) is None
    ours = loads(replace(seen, settings={"llm.keep_loaded": True}))
    assert ours is not None
    assert ours.after_first == {}


# --- score mass


def scored(*scores: float) -> Request:
    return make_seen([Ask(tuple(Piece(passage(i, 20), s) for i, s in enumerate(scores)))]).requests[0]


def test_probabilities_are_shared_out_as_they_are() -> None:
    request = scored(0.92, 0.71, 0.06, 0.05, 0.04, 0.02)
    assert floor_score([request]) == 0.0
    assert mass_of_first(request, 0.0) == pytest.approx(1.63 / 1.80)


def test_flat_cosines_have_no_mass_in_the_first_two() -> None:
    request = scored(0.65, 0.63, 0.61, 0.59, 0.57, 0.55)
    floor = floor_score([request])
    assert floor == 0.55
    assert mass_of_first(request, floor) == pytest.approx(0.6)


def test_distances_are_turned_round() -> None:
    request = scored(0.1, 0.2, 0.9, 0.9, 0.95, 1.0)
    mass = mass_of_first(request, floor_score([request]))
    assert mass is not None
    assert mass > 0.85


def test_three_chunks_or_unknown_scores_have_no_mass() -> None:
    assert mass_of_first(scored(0.9, 0.8, 0.1), 0.0) is None
    request = scored(0.9, 0.8, 0.1, 0.1)
    unknown = replace(request, chunks=tuple(replace(c, score=None) for c in request.chunks))
    assert mass_of_first(unknown, 0.0) is None


# --- confidence and sentences


@given(st.floats(0, 1), st.floats(0, 1))
def test_confidence_grows_with_the_fault_and_stays_a_probability(one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert 0.6 <= graded(low, 0.3, 0.8) <= graded(high, 0.3, 0.8) <= 0.95


@given(st.integers(1, 100))
def test_more_requests_never_lower_confidence(requests: int) -> None:
    assert from_few(0.9, requests) <= from_few(0.9, requests + 1) <= 0.9


def test_a_sentence_is_english_text_that_knows_its_chinese() -> None:
    sentence = say("{n:,} tokens", "{n:,} 个 token", n=1200)
    assert sentence == "1,200 tokens"
    assert in_language(sentence, "zh") == "1,200 个 token"
    assert in_language(sentence, "en") == "1,200 tokens"
    assert in_language("plain", "zh") == "plain"


def test_the_toy_service_streams_unless_told_otherwise() -> None:
    streamed, late = (make_seen([Ask()], Service(delivers_late=x)).requests[0] for x in (False, True))
    assert streamed.first_byte_ms is not None
    assert streamed.first_byte_ms < streamed.total_ms == late.first_byte_ms
