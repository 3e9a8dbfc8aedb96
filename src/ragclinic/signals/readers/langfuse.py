"""Langfuse: a trace of its UI or API (with `observations`), pages of observations, blob and batch exports.

Read: Langfuse server of 2026-08 (`buildTraceExport.ts`, the blob export's field groups), SDK 5.2, and the API of
versions 2 and 3 (`usage` instead of `usageDetails`). Names are camelCase in the API, snake_case in blob exports;
the times of the latter are UTC without a zone. Keys of `usageDetails` add up: `input` leaves cached tokens out,
which stand under keys of their own.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from ragclinic.signals.readers.elements import elements
from ragclinic.signals.readers.expand import documents, messages, usage
from ragclinic.signals.readers.fields import hex_id, items, kind, number, obj, text
from ragclinic.signals.readers.interpret import UNTOLD_ERROR, read_spans
from ragclinic.signals.readers.inventory import SPAN_SIGNALS
from ragclinic.signals.readers.names import FIRST_CHUNK_S
from ragclinic.signals.readers.reader import Origin, Reader, ReadLog, ReadOptions, Rows
from ragclinic.signals.readers.spans import SpanRow
from ragclinic.signals.readers.streams import peeked
from ragclinic.signals.readers.times import iso_ns

KINDS = {
    "GENERATION": "LLM",
    "EMBEDDING": "EMBEDDING",
    "RETRIEVER": "RETRIEVER",
    "TOOL": "TOOL",
    "AGENT": "AGENT",
    "CHAIN": "CHAIN",
    "EVALUATOR": "EVALUATOR",
    "GUARDRAIL": "GUARDRAIL",
}
_OWN = re.compile(rb'"(parentObservationId|parent_observation_id|completionStartTime|completion_start_time)"\s*:')
_OLD = re.compile(rb'"(usageDetails|usage_details|statusMessage|status_message|promptTokens)"\s*:')
_PAGE = re.compile(rb'^\s*\{\s*"(data|meta)"\s*:')


def sniff(head: bytes) -> float:
    """Sure where rows have Langfuse's own field names."""
    if head.lstrip()[:1] not in (b"{", b"["):
        return 0.0
    return 0.9 if _OWN.search(head) and (_OLD.search(head) or b'"observations"' in head) else 0.0


def parse_observation(row: Any, line: int, trace: Mapping[str, Any]) -> SpanRow:
    """An observation as a span; `trace` tells what the observation itself leaves out.

    Raises:
        ValueError: it is none; the message says what was found.
    """
    found = {_snake(str(key)): value for key, value in obj(row, "observation").items()}
    start_ns, end_ns = _time(found, "start_time"), _time(found, "end_time")
    if not start_ns:
        raise ValueError(f"startTime is {kind(found.get('start_time'))}; expected an ISO time")
    event = found.get("type") == "EVENT"
    return SpanRow(
        trace_id=hex_id(found.get("trace_id") or trace.get("id"), 32),
        span_id=hex_id(found.get("id"), 16),
        parent_id=hex_id(found.get("parent_observation_id"), 16) or None,
        name=text(found, "name") or str(found.get("type") or ""),
        start_ns=start_ns,
        end_ns=end_ns or (start_ns if event else 0),
        service=text(found, "environment") or "",
        error=(text(found, "status_message") or UNTOLD_ERROR) if found.get("level") == "ERROR" else None,
        attributes=_attributes(found, start_ns, trace),
        line=line,
    )


def read(stream: BinaryIO, origin: Origin, log: ReadLog, options: ReadOptions) -> Iterator[Rows]:
    """A row is an observation; scores and bare traces hold no time that was spent and are passed over."""
    head, whole = peeked(stream)
    found = elements(whole, origin, log, {"data.item"} if _PAGE.match(head) else {""})
    pairs = ((pair, element.line) for element in found for pair in _observations(element.value))
    rows = (row for row in pairs if not _is_passed(row[0][0], log))
    yield from read_spans(rows, lambda pair, line: parse_observation(pair[0], line, pair[1]), origin, log, options)


def _observations(value: Any) -> Iterator[tuple[Any, Mapping[str, Any]]]:
    if not isinstance(value, Mapping) or not isinstance(value.get("observations"), list):
        yield value, {}
        return
    trace = value.get("trace") if isinstance(value.get("trace"), Mapping) else value
    for row in value["observations"]:
        yield row, trace or {}
    for score in items(value.get("scores")):
        yield score, {}


def _is_passed(row: Any, log: ReadLog) -> bool:
    """Whether this is a score or a trace without its observations, which is counted here."""
    passed = isinstance(row, Mapping) and not {"startTime", "start_time"}.intersection(row) and "timestamp" in row
    if passed:
        log.skip()
    return passed


def _attributes(found: Mapping[str, Any], start_ns: int, trace: Mapping[str, Any]) -> dict[str, Any]:
    root = not found.get("parent_observation_id")
    given, made = _parsed(found.get("input")), _parsed(found.get("output"))
    flat: dict[str, Any] = {
        "openinference.span.kind": KINDS.get(str(found.get("type"))),
        "gen_ai.request.model": text(found, "model", "provided_model_name"),
        "user.id": text(found, "user_id") or text(trace, "userId", "user_id"),
        "session.id": text(found, "session_id") or text(trace, "sessionId", "session_id"),
        "input.value": _words(trace.get("input") if root and trace.get("input") else given),
        "output.value": _words(trace.get("output") if root and trace.get("output") else made),
        **_usage(found),
        **_metadata(found),
    }
    first_ns = _time(found, "completion_start_time")
    if first_ns > start_ns:
        flat[FIRST_CHUNK_S] = (first_ns - start_ns) / 1e9
    if found.get("type") == "GENERATION":
        flat.update(messages(_said(given)))
    if found.get("type") == "RETRIEVER":
        flat.update(documents(_retrieved(made)))
    return {name: value for name, value in flat.items() if value is not None}


def _usage(found: Mapping[str, Any]) -> dict[str, Any]:
    details = _parsed(found.get("usage_details")) or _parsed(found.get("usage"))
    if isinstance(details, Mapping) and (flat := usage(details)):
        return flat
    old = {"input": number(found.get("prompt_tokens")), "output": number(found.get("completion_tokens"))}
    return usage({key: value for key, value in old.items() if value})


def _metadata(found: Mapping[str, Any]) -> dict[str, Any]:
    told = _parsed(found.get("metadata"))
    plain = told.items() if isinstance(told, Mapping) else ()
    return {f"metadata.{key}": value for key, value in plain if isinstance(value, str | int | float | bool)}


def _said(given: Any) -> list[Any]:
    if isinstance(given, Mapping):
        given = given.get("messages", given.get("input"))
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    return items(given)


def _retrieved(made: Any) -> list[Any]:
    if isinstance(made, Mapping):
        made = next((made[k] for k in ("documents", "nodes", "chunks", "results", "output") if k in made), None)
    return items(made)


def _words(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)


def _parsed(value: Any) -> Any:
    """A field that may hold JSON as text, as blob exports write it."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def _time(found: Mapping[str, Any], name: str) -> int:
    value = found.get(name)
    return (iso_ns(value) or 0) if isinstance(value, str) else 0


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", lambda m: f"_{m[1].lower()}", name)


READER = Reader(
    id="langfuse-json",
    versions=("Langfuse server 2026-08 (v3)", "API v2", "blob export"),
    signals=SPAN_SIGNALS,
    sniff=sniff,
    read=read,
)
