"""From the spans, chunks and parts of a recording to requests: one trace is one question of one user."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from ragclinic.signals.content import QUESTION, QUESTION_KEY, question_key, question_text
from ragclinic.signals.prompts import prompt_parts, used_chunks
from ragclinic.signals.records import AttributeValue, Chunk, Part, Span
from ragclinic.signals.seen import Request
from ragclinic.signals.stages import NS_PER_MS, stage_of, stages

KIND = "ragclinic.request.kind"
ANSWER_CACHE = "ragclinic.cache.answer"
WINDOW_TOKENS = "ragclinic.window_tokens"

# Newest name first; every generation met in the field (docs/signals.md).
INPUT_TOKENS = ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt")
OUTPUT_TOKENS = ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.token_count.completion")
CACHED_TOKENS = (
    "gen_ai.usage.cache_read.input_tokens",
    "gen_ai.usage.cache_read_input_tokens",
    "gen_ai.usage.cached_tokens",
    "llm.token_count.prompt_details.cache_read",
)
FIRST_BYTE_S = (
    "ragclinic.time_to_first_byte",
    "gen_ai.response.time_to_first_chunk",
    "gen_ai.latency.time_to_first_token",
)
STREAM = ("gen_ai.request.stream", "gen_ai.is_streaming", "llm.is_streaming")
SESSION = (
    "session.id",
    "gen_ai.conversation.id",
    "langfuse.session.id",
    "traceloop.association.properties.session_id",
)
TENANT = (
    "tenant.id",
    "enduser.id",
    "user.id",
    "langfuse.user.id",
    "traceloop.association.properties.user_id",
    "gen_ai.user",
    "llm.user",
    *SESSION,
)
ANSWER = (
    "output.value",
    "langfuse.trace.output",
    "langfuse.observation.output",
    "traceloop.entity.output",
    "gen_ai.completion.0.content",
)


def build_requests(
    spans: Iterable[Span], chunks: Iterable[Chunk] = (), parts: Iterable[Part] = ()
) -> tuple[Request, ...]:
    """One request a trace, in order of arrival."""
    by_trace: dict[str, list[Span]] = defaultdict(list)
    for span in spans:
        by_trace[span.trace_id].append(span)
    chunks_by: dict[str, list[Chunk]] = defaultdict(list)
    for chunk in chunks:
        chunks_by[chunk.trace_id].append(chunk)
    parts_by: dict[str, list[Part]] = defaultdict(list)
    for part in parts:
        parts_by[part.trace_id].append(part)
    found = [
        _request(trace, chunks_by.get(trace_id, ()), parts_by.get(trace_id, ()))
        for trace_id, trace in by_trace.items()
    ]
    return tuple(sorted(found, key=lambda r: (r.arrival_ns, r.id)))


def _request(spans: Sequence[Span], chunks: Iterable[Chunk], parts: Sequence[Part]) -> Request:
    root = _root(spans)
    own = root.attributes
    everywhere = [own, *(s.attributes for s in spans if s is not root)]
    question = question_text(_first(everywhere, QUESTION))
    key = _text(own.get(QUESTION_KEY)) or (question_key(question) if question else None)
    first_byte_s = _number(_first([own], FIRST_BYTE_S))
    prompt_tokens, cached_tokens = _total(spans, INPUT_TOKENS), _total(spans, CACHED_TOKENS)
    if prompt_tokens is not None and cached_tokens is not None and cached_tokens > prompt_tokens:
        prompt_tokens += cached_tokens  # some exporters (Anthropic's own counts) leave cached tokens out
    used = used_chunks(
        chunks,
        {s.span_id: s.start_ns for s in spans},
        {s.span_id for s in spans if stage_of(s.attributes) == "rerank"},
    )
    cached = own.get(ANSWER_CACHE)
    streamed = _first(everywhere, STREAM)
    return Request(
        id=root.trace_id,
        arrival_ns=root.start_ns,
        total_ms=(root.end_ns - root.start_ns) / NS_PER_MS,
        first_byte_ms=first_byte_s * 1000 if first_byte_s is not None else None,
        kind=str(own.get(KIND, "user")),
        tenant=_text(_first(everywhere, TENANT)),
        session=_text(_first(everywhere, SESSION)),
        error=root.error,
        question=question,
        question_key=key,
        answer=_text(_first([own], ANSWER)),
        answer_cached=None if cached is None else cached == "hit",
        streamed=streamed if isinstance(streamed, bool) else None,
        prompt_tokens=prompt_tokens,
        cached_tokens=cached_tokens,
        output_tokens=_total(spans, OUTPUT_TOKENS),
        window_tokens=_count(_first(everywhere, (WINDOW_TOKENS,))),
        stages=stages(root, spans),
        chunks=used,
        parts=prompt_parts(parts, used),
    )


def _root(spans: Sequence[Span]) -> Span:
    """The span without a parent here; of several the longest, since a parent may not have been exported."""
    ids = {s.span_id for s in spans}
    tops = [s for s in spans if s.parent_id is None or s.parent_id not in ids] or list(spans)
    return max(tops, key=lambda s: (s.end_ns - s.start_ns, -s.start_ns))


def _first(sources: Sequence[Mapping[str, AttributeValue]], names: Sequence[str]) -> AttributeValue | None:
    return next((a[name] for a in sources for name in names if name in a), None)


def _total(spans: Sequence[Span], names: Sequence[str]) -> int | None:
    """The sum over the spans that carry the count: a trace may hold several generations.

    A span above another that carries it (the client of an instrumented server, an agent) counts the same tokens
    once more and is left out.
    """
    found = {s.span_id: n for s in spans if (n := _number(_first([s.attributes], names))) is not None}
    parents = {s.span_id: s.parent_id for s in spans}
    above: set[str | None] = set()
    for span_id in found:
        parent = parents.get(span_id)
        while parent is not None and parent not in above:
            above.add(parent)
            parent = parents.get(parent)
    counted = [n for span_id, n in found.items() if span_id not in above] or list(found.values())
    return round(sum(counted)) if counted else None


def _number(value: AttributeValue | None) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _count(value: AttributeValue | None) -> int | None:
    number = _number(value)
    return None if number is None else round(number)


def _text(value: AttributeValue | None) -> str | None:
    return value if isinstance(value, str) else None


def parse_attributes(text: str | None) -> dict[str, AttributeValue]:
    """The attributes of a span as the recording holds them."""
    found: dict[str, AttributeValue] = json.loads(text) if text else {}
    return found
