"""From the spans of one trace to the stages of one request: which span is which stage, and who covers what.

Stage names come from our own `ragclinic.stage` and from every public generation of names: OpenTelemetry GenAI
`gen_ai.operation.name`, OpenInference `openinference.span.kind`, OpenLLMetry `llm.request.type`, Langfuse
`langfuse.observation.type`, the vector store of a database span. A span that none of them names is no stage, and
its time stays a gap.
"""

import heapq
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from ragclinic.signals.records import AttributeValue, Span
from ragclinic.signals.seen import Stage

STAGE = "ragclinic.stage"
BY_OPERATION = {
    "embeddings": "embed",
    "retrieval": "search",
    "vector_db_retrieve": "search",
    "chat": "generate",
    "text_completion": "generate",
    "generate_content": "generate",
    "llm_request": "generate",
    "execute_tool": "tool",
    "rerank": "rerank",
}
BY_KIND = {"EMBEDDING": "embed", "RETRIEVER": "search", "RERANKER": "rerank", "LLM": "generate", "TOOL": "tool"}
BY_REQUEST_TYPE = {"chat": "generate", "completion": "generate", "embedding": "embed", "rerank": "rerank"}
BY_OBSERVATION = {"generation": "generate", "embedding": "embed", "retriever": "search", "tool": "tool"}
NAMED_BY: tuple[tuple[str, Mapping[str, str]], ...] = (
    ("gen_ai.operation.name", BY_OPERATION),
    ("openinference.span.kind", BY_KIND),
    ("llm.request.type", BY_REQUEST_TYPE),
    ("langfuse.observation.type", BY_OBSERVATION),
)
VECTOR_STORES = frozenset(
    {"chroma", "chromadb", "pinecone", "qdrant", "milvus", "weaviate", "lancedb", "marqo", "redis", "pgvector"}
    | {"elasticsearch", "opensearch", "vespa"}
)
SERVER_E2E = "gen_ai.latency.e2e"
FIRST_CHUNK_S = ("gen_ai.response.time_to_first_chunk", "gen_ai.latency.time_to_first_token")
# What vLLM and SGLang measured inside themselves, in the order in which it happens; seconds.
SERVER_PARTS = (
    ("queue", "gen_ai.latency.time_in_queue"),
    ("prefill", "gen_ai.latency.time_in_model_prefill"),
    ("decode", "gen_ai.latency.time_in_model_decode"),
)
NS_PER_MS = 1e6


class _Piece(NamedTuple):
    """A stretch of a stage: deeper ones cover it, and of equals the earlier keeps the time."""

    start_ms: float
    end_ms: float
    name: str
    depth: int


def stage_of(attributes: Mapping[str, AttributeValue]) -> str | None:
    """The name of the stage a span with these attributes is, or None."""
    own = attributes.get(STAGE)
    if isinstance(own, str):
        return own
    for name, stages_by in NAMED_BY:
        found = stages_by.get(str(attributes.get(name)))
        if found is not None:
            return found
    if SERVER_E2E in attributes:
        return "generate"
    store = str(attributes.get("db.system.name", attributes.get("db.system", ""))).lower()
    return "search" if store in VECTOR_STORES else None


def stages(root: Span, spans: Sequence[Span]) -> tuple[Stage, ...]:
    """The stages of a request in milliseconds after its root's start: innermost spans, sorted, never overlapping.

    A stage inside another takes its time from it (the embedding inside a retriever); a generation that holds the
    stages of its server is left to them altogether, so that the way there and back stays a gap. Of two that
    overlap side by side the earlier keeps the time, so that the stages can be summed.
    """
    named = [(s, name) for s in spans if (name := stage_of(s.attributes)) is not None]
    parents = {s.span_id: s.parent_id for s in spans}
    lines = {s.span_id: _ancestors(s.parent_id, parents) for s, _ in named}
    holders = set().union(*lines.values())
    pieces = [
        _Piece(stage.start_ms, stage.end_ms, stage.name, len(lines[span.span_id]))
        for span, name in named
        if not (name == "generate" and span.span_id in holders)
        for stage in _split(span, name, root.start_ns)
    ]
    return tuple(_apart(pieces, (root.end_ns - root.start_ns) / NS_PER_MS))


def _ancestors(span_id: str | None, parents: Mapping[str, str | None]) -> set[str]:
    found: set[str] = set()
    while span_id is not None and span_id not in found:  # a loop of parents is broken input, not a reason to hang
        found.add(span_id)
        span_id = parents.get(span_id)
    return found


def _split(span: Span, name: str, zero_ns: int) -> list[Stage]:
    """One stage, or the parts of a generation that tells its first token or what its server measured."""
    start, end = (span.start_ns - zero_ns) / NS_PER_MS, (span.end_ns - zero_ns) / NS_PER_MS
    if name != "generate":
        return [Stage(name, start, end)]
    measured = [(part, _ms(span.attributes.get(attribute))) for part, attribute in SERVER_PARTS]
    if any(ms is not None for part, ms in measured if part != "queue"):
        return _in_a_row(measured, start, end)
    for attribute in FIRST_CHUNK_S:
        first = _ms(span.attributes.get(attribute))
        if first is not None and 0 < first < end - start:
            return [Stage("prefill", start, start + first), Stage("decode", start + first, end)]
    return [Stage(name, start, end)]


def _in_a_row(measured: Sequence[tuple[str, float | None]], start: float, end: float) -> list[Stage]:
    """The measured parts one after another, ending with the span: what they leave came before, on the way in."""
    parts = [(name, ms) for name, ms in measured if ms]
    position = max(start, end - sum(ms for _, ms in parts))
    found = []
    for name, ms in parts:
        found.append(Stage(name, position, min(position + ms, end)))
        position = min(position + ms, end)
    return found


def _ms(seconds: AttributeValue | None) -> float | None:
    if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not seconds >= 0:
        return None
    return seconds * 1000


def _apart(pieces: Sequence[_Piece], total_ms: float) -> Iterator[Stage]:
    """Sweeps over the pieces: at each moment the deepest one runs, of equals the one that began first."""
    waiting = sorted(p for p in pieces if p.end_ms > 0 and p.start_ms < total_ms)
    moments = sorted({min(max(t, 0.0), total_ms) for p in waiting for t in (p.start_ms, p.end_ms)})
    open_pieces: list[tuple[int, float, float, str]] = []
    index = 0
    current: Stage | None = None
    for start, end in pairwise(moments):
        while index < len(waiting) and waiting[index].start_ms <= start:
            piece = waiting[index]
            heapq.heappush(open_pieces, (-piece.depth, piece.start_ms, piece.end_ms, piece.name))
            index += 1
        while open_pieces and open_pieces[0][2] <= start:
            heapq.heappop(open_pieces)
        name = open_pieces[0][3] if open_pieces else None
        if current is not None and (current.name != name or current.end_ms != start):
            yield current
            current = None
        if name is not None:
            current = Stage(name, start if current is None else current.start_ms, end)
    if current is not None:
        yield current
