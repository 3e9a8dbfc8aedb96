"""Attributes that hold structures, and events, spelt out as the flat names that chunks and prompts are read from.

Each function takes the text of one value and returns flat attributes; a value that is not what its name promises
gives none, and the span is kept as it is.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ragclinic.signals.readers.fields import number
from ragclinic.signals.readers.names import (
    DETAIL_EVENTS,
    FIRST_CHUNK_S,
    FIRST_TOKEN_EVENTS,
    RESULT_EVENTS,
    SYSTEM_TEXT,
)
from ragclinic.signals.readers.spans import Event
from ragclinic.signals.readers.times import iso_ns

Flat = dict[str, Any]
Expand = Callable[[str, int], Flat]
NS_PER_S = 1e9


def documents(values: Iterable[Any], prefix: str = "retrieval.documents") -> Flat:
    """Documents of any framework as OpenInference has them.

    Known shapes: GenAI `{id, score}`, LangChain `{page_content, metadata}`, LlamaIndex `{node: {text}, score}`,
    plain texts.
    """
    flat: Flat = {}
    for index, value in enumerate(values):
        for field, found in _document(value).items():
            flat[f"{prefix}.{index}.document.{field}"] = found
    return flat


def messages(values: Iterable[Any]) -> Flat:
    """Chat messages of any framework as OpenInference has them."""
    flat: Flat = {}
    for index, value in enumerate(values):
        if isinstance(value, Mapping):
            role, content = _message(value)
            flat[f"llm.input_messages.{index}.message.role"] = role
            flat[f"llm.input_messages.{index}.message.content"] = content
    return flat


def usage(details: Mapping[str, Any]) -> Flat:
    """Token counts of a Langfuse `usageDetails`: every key with `input` in it adds to the prompt, cached too."""
    counts = {str(k): n for k, v in details.items() if not isinstance(v, str) and (n := number(v)) is not None}
    flat: Flat = {}
    for name, found in (
        ("gen_ai.usage.input_tokens", [v for k, v in counts.items() if "input" in k]),
        ("gen_ai.usage.output_tokens", [v for k, v in counts.items() if "output" in k]),
        ("gen_ai.usage.cache_read.input_tokens", [v for k, v in counts.items() if _is_cache_read(k)]),
    ):
        if found:
            flat[name] = round(sum(found))
    return flat


def from_events(events: Iterable[Event], starts: Mapping[int, int]) -> Iterable[tuple[int, Flat]]:
    """Rows with what their events add: the first token, results of a vector search, prompts."""
    first: dict[int, int] = {}
    results: dict[int, list[Mapping[str, Any]]] = {}
    for event in events:
        if event.name in FIRST_TOKEN_EVENTS:
            first[event.row] = min(first.get(event.row, event.time_ns), event.time_ns)
        elif event.name in RESULT_EVENTS:
            results.setdefault(event.row, []).append(event.attributes)
        elif event.name in DETAIL_EVENTS:
            yield event.row, dict(event.attributes)
    for row, time_ns in first.items():
        if time_ns > starts[row]:
            yield row, {FIRST_CHUNK_S: (time_ns - starts[row]) / NS_PER_S}
    for row, found in results.items():
        yield row, documents([_search_result(attributes) for attributes in found])


def exception_text(event: Event) -> str | None:
    """What an `exception` event says went wrong, or None for another event."""
    if event.name != "exception":
        return None
    told = [event.attributes.get(name) for name in ("exception.type", "exception.message")]
    return ": ".join(str(t) for t in told if t) or None


def _from_documents(text: str, _: int) -> Flat:
    found = _parsed(text)
    return documents(found) if isinstance(found, list) else {}


def _from_messages(text: str, _: int) -> Flat:
    found = _parsed(text)
    if isinstance(found, Mapping):
        found = found.get("messages")
    return messages(found) if isinstance(found, list) else {}


def _from_instructions(text: str, _: int) -> Flat:
    found = _parsed(text)
    told = _content(found) if isinstance(found, list) else text
    return {SYSTEM_TEXT: told}


def _from_usage(text: str, _: int) -> Flat:
    found = _parsed(text)
    return usage(found) if isinstance(found, Mapping) else {}


def _from_completion_start(text: str, start_ns: int) -> Flat:
    found = _parsed(text)
    time_ns = iso_ns(found if isinstance(found, str) else text)
    return {FIRST_CHUNK_S: (time_ns - start_ns) / NS_PER_S} if time_ns and time_ns > start_ns else {}


EXPANSIONS: Mapping[str, Expand] = {
    "gen_ai.retrieval.documents": _from_documents,
    "gen_ai.input.messages": _from_messages,
    "gen_ai.prompt": _from_messages,
    "gen_ai.system_instructions": _from_instructions,
    "langfuse.observation.usage_details": _from_usage,
    "langfuse.observation.completion_start_time": _from_completion_start,
}


def _document(value: Any) -> Flat:
    if isinstance(value, str):
        return {"content": value}
    if not isinstance(value, Mapping):
        return {}
    node = value.get("node")
    inner: Mapping[str, Any] = node if isinstance(node, Mapping) else value
    metadata = inner.get("metadata") or value.get("metadata")
    found = {
        "id": _first(inner, "id", "id_", "document_id", "chunk_id", "doc_id"),
        "content": _first(inner, "page_content", "content", "text", "document", "chunk"),
        "score": _first(value, "score", "relevance_score", "similarity"),
        "metadata": json.dumps(metadata, ensure_ascii=False, default=str)
        if isinstance(metadata, Mapping)
        else None,
    }
    if found["score"] is None and isinstance(metadata, Mapping):
        found["score"] = _first(metadata, "score", "relevance_score", "_score")
    return {name: told for name, told in found.items() if told is not None}


def _search_result(attributes: Mapping[str, Any]) -> Flat:
    """A result event of OpenLLMetry. A distance is no score: smaller is nearer, so it is left out."""
    short = {name.rpartition(".")[2]: value for name, value in attributes.items()}
    metadata = _parsed(short["metadata"]) if isinstance(short.get("metadata"), str) else None
    return {
        "id": short.get("id"),
        "content": short.get("document"),
        "score": short.get("score"),
        "metadata": metadata,
    }


def _message(value: Mapping[str, Any]) -> tuple[str, str]:
    """Role and text of a message: OpenAI, GenAI parts, LangChain serialised (`id`, `kwargs`)."""
    kwargs = value.get("kwargs")
    if isinstance(kwargs, Mapping) and isinstance(value.get("id"), list):
        kind = str((value["id"] or ["user"])[-1])
        return kind.removesuffix("Chunk").removesuffix("Message").lower(), _content(kwargs.get("content"))
    role = str(_first(value, "role", "type") or "user")
    return role, _content(_first(value, "content", "parts", "text"))


def _content(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(text for part in value if (text := _content(part)))
    if isinstance(value, Mapping):
        return _content(_first(value, "content", "text", "result"))
    return "" if value is None else str(value)


def _first(source: Mapping[str, Any], *names: str) -> Any:
    return next((source[name] for name in names if source.get(name) is not None), None)


def _is_cache_read(key: str) -> bool:
    return ("cache" in key and "read" in key) or "cached" in key


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
