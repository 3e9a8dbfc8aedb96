"""LangSmith runs: `{"runs": [...]}` of its API, a list of runs, one a line, or trees with `child_runs`.

Read: langsmith SDK 0.15.1 (`schemas.Run`). Times are ISO, UTC where they name no zone. Token counts stand on the
run (`prompt_tokens`, `prompt_token_details`), in `outputs.usage_metadata`, or in `extra.metadata.usage_metadata`.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from ragclinic.signals.readers.elements import elements
from ragclinic.signals.readers.expand import documents, messages
from ragclinic.signals.readers.fields import hex_id, items, kind, number, obj, text
from ragclinic.signals.readers.interpret import read_spans
from ragclinic.signals.readers.inventory import SPAN_SIGNALS
from ragclinic.signals.readers.names import FIRST_CHUNK_S
from ragclinic.signals.readers.reader import Origin, Reader, ReadLog, ReadOptions, Rows
from ragclinic.signals.readers.spans import SpanRow
from ragclinic.signals.readers.streams import peeked
from ragclinic.signals.readers.times import iso_ns

KINDS = {
    "llm": "LLM",
    "retriever": "RETRIEVER",
    "embedding": "EMBEDDING",
    "tool": "TOOL",
    "chain": "CHAIN",
    "prompt": "PROMPT",
    "parser": "CHAIN",
}
SESSION_KEYS = ("session_id", "thread_id", "conversation_id")
_SNIFF = re.compile(rb'"run_type"\s*:')
_PAGE = re.compile(rb'^\s*\{\s*"(runs|cursors)"\s*:')
_FIRST_TOKEN = "new_token"  # noqa: S105  # an event, not a secret


def sniff(head: bytes) -> float:
    """Sure where objects have a `run_type`."""
    if head.lstrip()[:1] not in (b"{", b"[") or not _SNIFF.search(head):
        return 0.0
    return 0.9 if b'"start_time"' in head else 0.5


def parse_run(run: Any, line: int) -> SpanRow:
    """A run as a span.

    Raises:
        ValueError: it is none; the message says what was found.
    """
    found = obj(run, "run")
    start_ns, end_ns = _time(found.get("start_time")), _time(found.get("end_time"))
    if not start_ns:
        raise ValueError(f"start_time is {kind(found.get('start_time'))}; expected an ISO time")
    return SpanRow(
        trace_id=hex_id(found.get("trace_id") or found.get("id"), 32),
        span_id=hex_id(found.get("id"), 16),
        parent_id=hex_id(found.get("parent_run_id"), 16) or None,
        name=text(found, "name") or "",
        start_ns=start_ns,
        end_ns=end_ns,
        service=text(found, "session_name") or "",
        error=_first_line(text(found, "error")),
        attributes=_attributes(found, start_ns),
        line=line,
    )


def read(stream: BinaryIO, origin: Origin, log: ReadLog, options: ReadOptions) -> Iterator[Rows]:
    """A row is a run."""
    head, whole = peeked(stream)
    found = elements(whole, origin, log, {"runs.item"} if _PAGE.match(head) else {""})
    rows = ((run, element.line) for element in found for run in _with_children(element.value))
    yield from read_spans(rows, parse_run, origin, log, options)


def _with_children(run: Any) -> Iterator[Any]:
    waiting = [run]
    while waiting:
        run = waiting.pop()
        yield run
        if isinstance(run, Mapping):
            waiting.extend(items(run.get("child_runs")))


def _attributes(found: Mapping[str, Any], start_ns: int) -> dict[str, Any]:
    inputs, outputs, metadata = (_map(found.get("inputs")), _map(found.get("outputs")), _metadata(found))
    flat: dict[str, Any] = {
        "openinference.span.kind": KINDS.get(str(found.get("run_type"))),
        "gen_ai.request.model": text(metadata, "ls_model_name"),
        "user.id": text(metadata, "user_id"),
        "session.id": text(metadata, *SESSION_KEYS),
        "input.value": _words(inputs),
        "output.value": _words(outputs),
        FIRST_CHUNK_S: _first_token_s(found, start_ns),
        **{f"metadata.{k}": v for k, v in metadata.items() if isinstance(v, str | int | float | bool)},
    }
    if found.get("run_type") == "llm":
        flat.update(_tokens(found, outputs, metadata))
        flat.update(messages(_said(inputs)))
    if found.get("run_type") == "retriever":
        flat.update(documents(items(outputs.get("documents", outputs.get("output")))))
    return {name: value for name, value in flat.items() if value is not None}


def _tokens(run: Mapping[str, Any], outputs: Mapping[str, Any], metadata: Mapping[str, Any]) -> dict[str, Any]:
    told = _map(outputs.get("usage_metadata")) or _map(metadata.get("usage_metadata"))
    details = _map(run.get("prompt_token_details")) or _map(told.get("input_token_details"))
    old = _map(_map(outputs.get("llm_output")).get("token_usage"))
    counts = {
        "gen_ai.usage.input_tokens": (
            run.get("prompt_tokens"),
            told.get("input_tokens"),
            old.get("prompt_tokens"),
        ),
        "gen_ai.usage.output_tokens": (
            run.get("completion_tokens"),
            told.get("output_tokens"),
            old.get("completion_tokens"),
        ),
        "gen_ai.usage.cache_read.input_tokens": (details.get("cache_read"),),
    }
    return {name: next((round(n) for v in values if (n := number(v))), None) for name, values in counts.items()}


def _first_token_s(run: Mapping[str, Any], start_ns: int) -> float | None:
    events = [e for e in items(run.get("events")) if isinstance(e, Mapping) and e.get("name") == _FIRST_TOKEN]
    times = [_time(run.get("first_token_time")), *(_time(event.get("time")) for event in events)]
    later = [time for time in times if time > start_ns]
    return (min(later) - start_ns) / 1e9 if later else None


def _said(inputs: Mapping[str, Any]) -> list[Any]:
    """Messages of a call: a list, a list in a list (one a prompt of a batch), or bare prompts."""
    said = items(inputs.get("messages"))
    if said and isinstance(said[0], list):
        said = said[0]
    return said or [{"role": "user", "content": prompt} for prompt in items(inputs.get("prompts"))[:1]]


def _metadata(run: Mapping[str, Any]) -> Mapping[str, Any]:
    return _map(_map(run.get("extra")).get("metadata"))


def _map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _words(value: Mapping[str, Any]) -> str | None:
    """What a run was given or gave: a single text as it is, else JSON."""
    if not value:
        return None
    if len(value) == 1 and isinstance(only := next(iter(value.values())), str):
        return only
    return json.dumps(value, ensure_ascii=False, default=str)


def _first_line(told: str | None) -> str | None:
    return told.strip().splitlines()[0] if told and told.strip() else None


def _time(value: Any) -> int:
    return (iso_ns(value) or 0) if isinstance(value, str) else 0


READER = Reader(
    id="langsmith-runs",
    versions=("langsmith SDK 0.15.1",),
    signals=SPAN_SIGNALS,
    sniff=sniff,
    read=read,
)
