"""From the spans of one trace to the stages of one request: which span is which stage, and who covers what.

Stage names come from our own `ragclinic.stage`, from OpenTelemetry GenAI `gen_ai.operation.name` and from
OpenInference `openinference.span.kind`; a span that none of them names is no stage, and its time stays a gap.
"""

from collections.abc import Mapping, Sequence

from ragclinic.signals.records import AttributeValue, Span
from ragclinic.signals.seen import Stage

STAGE = "ragclinic.stage"
BY_OPERATION = {
    "embeddings": "embed",
    "retrieval": "search",
    "chat": "generate",
    "text_completion": "generate",
    "generate_content": "generate",
    "execute_tool": "tool",
}
BY_KIND = {"EMBEDDING": "embed", "RETRIEVER": "search", "RERANKER": "rerank", "LLM": "generate", "TOOL": "tool"}
FIRST_CHUNK_S = ("gen_ai.response.time_to_first_chunk", "gen_ai.latency.time_to_first_token")
NS_PER_MS = 1e6


def stage_of(attributes: Mapping[str, AttributeValue]) -> str | None:
    """The name of the stage a span with these attributes is, or None."""
    own = attributes.get(STAGE)
    if isinstance(own, str):
        return own
    operation = BY_OPERATION.get(str(attributes.get("gen_ai.operation.name")))
    return operation or BY_KIND.get(str(attributes.get("openinference.span.kind")))


def stages(root: Span, spans: Sequence[Span]) -> tuple[Stage, ...]:
    """The stages below the root in milliseconds after its start: innermost spans, sorted, never overlapping.

    A span that holds another stage is left to it (an LLM call with its own prefill and decode spans), and where
    two overlap the earlier keeps the time, so that the stages can be summed.
    """
    named = [(s, name) for s in spans if s is not root and (name := stage_of(s.attributes)) is not None]
    parents = {s.span_id: s.parent_id for s in spans}
    holders = {ancestor for s, _ in named for ancestor in _ancestors(s.parent_id, parents)}
    found = [
        stage for span, name in named if span.span_id not in holders for stage in _split(span, name, root.start_ns)
    ]
    return _apart(sorted(found, key=lambda s: (s.start_ms, s.end_ms)), (root.end_ns - root.start_ns) / NS_PER_MS)


def _ancestors(span_id: str | None, parents: Mapping[str, str | None]) -> set[str]:
    found: set[str] = set()
    while span_id is not None and span_id not in found:  # a loop of parents is broken input, not a reason to hang
        found.add(span_id)
        span_id = parents.get(span_id)
    return found


def _split(span: Span, name: str, zero_ns: int) -> list[Stage]:
    """One stage, or prefill and decode where a generation tells its first token."""
    start, end = (span.start_ns - zero_ns) / NS_PER_MS, (span.end_ns - zero_ns) / NS_PER_MS
    if name == "generate":
        for attribute in FIRST_CHUNK_S:
            first = span.attributes.get(attribute)
            if isinstance(first, int | float) and 0 < first * 1000 < end - start:
                middle = start + first * 1000
                return [Stage("prefill", start, middle), Stage("decode", middle, end)]
    return [Stage(name, start, end)]


def _apart(found: Sequence[Stage], total_ms: float) -> tuple[Stage, ...]:
    apart: list[Stage] = []
    position = 0.0
    for stage in found:
        start, end = max(stage.start_ms, position), min(stage.end_ms, total_ms)
        if end > start:
            apart.append(Stage(stage.name, start, end))
            position = end
    return tuple(apart)
