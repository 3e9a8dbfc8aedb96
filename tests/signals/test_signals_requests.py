"""Spans of a trace become one request with stages that can be summed."""

from hypothesis import given
from hypothesis import strategies as st

from ragclinic.signals.content import question_key
from ragclinic.signals.records import AttributeValue, Span
from ragclinic.signals.requests import build_requests
from ragclinic.signals.stages import stages

MS = 1_000_000


def span(
    name: str, start_ms: float, end_ms: float, parent: str | None = "root", **attributes: AttributeValue
) -> Span:
    """A span of trace `t` whose id is its name."""
    named = {key.replace("__", "."): value for key, value in attributes.items()}
    return Span("t", name, parent, name, int(start_ms * MS), int(end_ms * MS), attributes=named)


ROOT = span("root", 0, 1000, None, input__value="What is TTFT?", session__id="s", tenant__id="acme")


def test_our_own_stage_names_are_kept() -> None:
    found = stages(
        ROOT, [ROOT, span("a", 10, 20, ragclinic__stage="embed"), span("b", 20, 40, ragclinic__stage="search")]
    )
    assert [(s.name, s.duration_ms) for s in found] == [("embed", 10.0), ("search", 20.0)]


def test_genai_and_openinference_names_are_understood() -> None:
    found = stages(
        ROOT,
        [
            ROOT,
            span("a", 0, 5, gen_ai__operation__name="embeddings"),
            span("b", 5, 9, openinference__span__kind="RERANKER"),
        ],
    )
    assert [s.name for s in found] == ["embed", "rerank"]


def test_a_generation_that_tells_its_first_token_splits_into_prefill_and_decode() -> None:
    llm = span("a", 100, 900, gen_ai__operation__name="chat", gen_ai__response__time_to_first_chunk=0.3)
    found = stages(ROOT, [ROOT, llm])
    assert [(s.name, s.start_ms, s.end_ms) for s in found] == [("prefill", 100.0, 400.0), ("decode", 400.0, 900.0)]


def test_a_span_that_holds_stages_is_left_to_them() -> None:
    llm = span("llm", 100, 900, gen_ai__operation__name="chat")
    found = stages(ROOT, [ROOT, llm, span("p", 120, 500, "llm", ragclinic__stage="prefill")])
    assert [s.name for s in found] == ["prefill"]


def test_a_loop_of_parents_ends_and_both_keep_their_time() -> None:
    a = span("a", 0, 5, "b", ragclinic__stage="embed")
    b = span("b", 5, 9, "a", ragclinic__stage="search")
    assert [s.name for s in stages(ROOT, [ROOT, a, b])] == ["embed", "search"]


@given(st.lists(st.tuples(st.integers(-50, 1100), st.integers(-50, 1100)), max_size=12))
def test_stages_never_overlap_and_never_leave_the_request(bounds: list[tuple[int, int]]) -> None:
    spans = [span(f"s{i}", a, b, ragclinic__stage="embed") for i, (a, b) in enumerate(bounds)]
    found = stages(ROOT, [ROOT, *spans])
    edges = [edge for s in found for edge in (s.start_ms, s.end_ms)]
    assert edges == sorted(edges)
    assert all(0 <= edge <= 1000 for edge in edges)


def test_counts_of_several_generations_add_up_and_old_names_count() -> None:
    spans = [
        ROOT,
        span("a", 0, 5, gen_ai__usage__input_tokens=10, gen_ai__usage__output_tokens=1),
        span("b", 5, 9, gen_ai__usage__prompt_tokens=7, llm__token_count__completion=2),
    ]
    request = build_requests(spans)[0]
    assert (request.prompt_tokens, request.output_tokens, request.cached_tokens) == (17, 3, None)
    assert (request.tenant, request.session, request.total_ms) == ("acme", "s", 1000.0)


def test_the_root_is_found_when_its_parent_was_not_exported() -> None:
    child, top = span("c", 10, 20, "top"), span("top", 0, 100, "lost")
    assert build_requests([child, top])[0].total_ms == 100.0


def test_equal_questions_have_equal_keys_whatever_their_case_and_signs() -> None:
    assert question_key("What is a KV-cache?") == question_key(" what is a kv cache ")
    assert question_key("什么是前缀缓存？") == question_key("什么是前缀缓存")
    assert question_key("port 80?") != question_key("port 81?")
