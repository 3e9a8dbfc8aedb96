"""From the spans, chunks and parts of a recording to requests: one trace is one question of one user."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from ragclinic.signals.content import QUESTION_KEY, question_key
from ragclinic.signals.records import AttributeValue, Chunk, Part, Span
from ragclinic.signals.seen import Request
from ragclinic.signals.stages import NS_PER_MS, stages

KIND = "ragclinic.request.kind"
ANSWER_CACHE = "ragclinic.cache.answer"
WINDOW_TOKENS = "ragclinic.window_tokens"

# Newest name first; every generation met in the field (docs/signals.md).
INPUT_TOKENS = ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt")
OUTPUT_TOKENS = ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.token_count.completion")
CACHED_TOKENS = ("gen_ai.usage.cache_read.input_tokens", "llm.token_count.prompt_details.cache_read")
FIRST_BYTE_S = ("ragclinic.time_to_first_byte", "gen_ai.response.time_to_first_chunk")
STREAM = ("gen_ai.request.stream",)
TENANT = ("tenant.id", "enduser.id", "user.id")
SESSION = ("session.id", "gen_ai.conversation.id")
QUESTION = ("input.value", "gen_ai.retrieval.query.text")


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
        _request(
            trace,
            tuple(sorted(chunks_by.get(trace_id, ()), key=lambda c: c.rank)),
            tuple(sorted(parts_by.get(trace_id, ()), key=lambda p: p.position)),
        )
        for trace_id, trace in by_trace.items()
    ]
    return tuple(sorted(found, key=lambda r: (r.arrival_ns, r.id)))


def _request(spans: Sequence[Span], chunks: tuple[Chunk, ...], parts: tuple[Part, ...]) -> Request:
    root = _root(spans)
    own = root.attributes
    everywhere = [own, *(s.attributes for s in spans if s is not root)]
    question = _text(_first(everywhere, QUESTION))
    key = _text(own.get(QUESTION_KEY)) or (question_key(question) if question else None)
    first_byte_s = _number(_first([own], FIRST_BYTE_S))
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
        answer=_text(own.get("output.value")),
        answer_cached=None if cached is None else cached == "hit",
        streamed=streamed if isinstance(streamed, bool) else None,
        prompt_tokens=_total(everywhere, INPUT_TOKENS),
        cached_tokens=_total(everywhere, CACHED_TOKENS),
        output_tokens=_total(everywhere, OUTPUT_TOKENS),
        window_tokens=_count(_first(everywhere, (WINDOW_TOKENS,))),
        stages=stages(root, spans),
        chunks=chunks,
        parts=parts,
    )


def _root(spans: Sequence[Span]) -> Span:
    """The span without a parent here; of several the longest, since a parent may not have been exported."""
    ids = {s.span_id for s in spans}
    tops = [s for s in spans if s.parent_id is None or s.parent_id not in ids] or list(spans)
    return max(tops, key=lambda s: (s.end_ns - s.start_ns, -s.start_ns))


def _first(sources: Sequence[Mapping[str, AttributeValue]], names: Sequence[str]) -> AttributeValue | None:
    return next((a[name] for a in sources for name in names if name in a), None)


def _total(sources: Sequence[Mapping[str, AttributeValue]], names: Sequence[str]) -> int | None:
    """The sum over the spans that carry the count: a trace may hold several generations."""
    found = [n for a in sources if (n := _number(_first([a], names))) is not None]
    return round(sum(found)) if found else None


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
