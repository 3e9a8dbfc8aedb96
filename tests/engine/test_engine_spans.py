"""What an engine did becomes spans, and the spans become the same request again."""

from pathlib import Path

import pytest

from ragclinic.engine.llm.client import Generation
from ragclinic.engine.pipeline import generation_stages
from ragclinic.engine.settings import Settings
from ragclinic.engine.spans import emit, tracer
from ragclinic.engine.trace import RequestTrace
from ragclinic.signals.content import ContentPolicy
from ragclinic.signals.load import load
from ragclinic.signals.recording import RecordingWriter

MS = 1_000_000


class Clock:
    """A clock that is set by hand, in ms."""

    def __init__(self) -> None:
        self.ms = 1000

    def __call__(self) -> int:
        return self.ms * MS


def run(streamed: bool) -> RequestTrace:
    """A request: 5 ms of embedding, 10 ms of search, 20 ms of queue, 200 ms of prefill, 100 ms of decoding."""
    clock = Clock()
    trace = RequestTrace(clock)
    trace.attributes |= {"input.value": "What is TTFT?", "session.id": "s1", "tenant.id": "acme"}
    for name, ms in (("embed", 5), ("search", 10)):
        with trace.stage(name):
            clock.ms += ms
    start = clock()
    clock.ms += 320
    first = start + 222 * MS if streamed else None
    generation = Generation("It is ...", start, clock(), first, 300, 100, 9, prefill_ms=200.0, decode_ms=100.0)
    trace.stages += generation_stages(generation, Settings())
    if streamed:
        trace.first_byte_ns = first
    trace.attributes["output.value"] = generation.text
    trace.finish()
    return trace


@pytest.mark.parametrize("streamed", [True, False])
def test_a_request_survives_the_way_through_a_recording(tmp_path: Path, streamed: bool) -> None:
    with RecordingWriter(tmp_path / "rec", {"slots": 2}, ContentPolicy()) as writer:
        trace_id = emit(tracer(writer), run(streamed))
    seen = load(tmp_path / "rec")
    (request,) = seen.requests
    assert request.id == trace_id
    assert [(s.name, s.start_ms, s.end_ms) for s in request.stages] == [
        ("embed", 0, 5),
        ("search", 5, 15),
        ("queue", 15, 35),
        ("prefill", 35, 235),
        ("decode", 235, 335),
    ]
    assert (request.prompt_tokens, request.cached_tokens, request.computed_tokens, request.output_tokens) == (
        300,
        100,
        200,
        9,
    )
    assert request.first_byte_ms == pytest.approx(237 if streamed else 335)
    assert (request.question, request.answer, request.tenant) == ("What is TTFT?", "It is ...", "acme")
    assert (request.total_ms, seen.slots, request.window_tokens) == (335, 2, 8192)


def test_a_failed_request_is_recorded_with_its_error(tmp_path: Path) -> None:
    clock = Clock()
    trace = RequestTrace(clock)
    clock.ms += 7
    trace.finish()
    with RecordingWriter(tmp_path / "rec", {}, ContentPolicy()) as writer:
        emit(tracer(writer), trace, error="LLM at x: refused")
    (request,) = load(tmp_path / "rec").requests
    assert (request.error, request.total_ms) == ("LLM at x: refused", 7)


def test_a_server_without_timings_leaves_one_generation() -> None:
    generation = Generation("x", 0, 100 * MS, None, 5, None, 2)
    assert [s.name for s in generation_stages(generation, Settings())] == ["generate"]


def test_timings_longer_than_the_call_never_make_a_negative_stage() -> None:
    generation = Generation("x", 0, 100 * MS, None, 5, 0, 2, prefill_ms=90.0, decode_ms=80.0)
    assert all(s.end_ns >= s.start_ns >= 0 for s in generation_stages(generation, Settings()))


def test_where_chooses_requests_by_sql(tmp_path: Path) -> None:
    with RecordingWriter(tmp_path / "rec", {}, ContentPolicy()) as writer:
        emit(tracer(writer), run(True))
        emit(tracer(writer), run(True))
    assert len(load(tmp_path / "rec", "attributes->>'tenant.id' = 'acme'").requests) == 2
    assert load(tmp_path / "rec", "attributes->>'tenant.id' = 'other'").requests == ()
