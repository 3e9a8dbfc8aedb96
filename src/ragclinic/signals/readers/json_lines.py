"""Application logs of one JSON object a line: a request with its duration, or one stage of one.

What the fields are called is in `json_fields`; `--fields theirs=ours` adds to it. A line is printed when the
thing it tells of is over, so its time is the end, unless the field says that it is the start. Lines with a
stage belong to the request of the same id; a line without is a request, whose stages may stand beside it as
durations of their own.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from ragclinic.signals.readers.clock import epoch_ns, find_time
from ragclinic.signals.readers.elements import elements
from ragclinic.signals.readers.fields import number, obj
from ragclinic.signals.readers.json_fields import PARTS, TIMES, Fields, look_up
from ragclinic.signals.readers.log_common import Part, request_spans, trace_id
from ragclinic.signals.readers.reader import Origin, Reader, ReadLog, ReadOptions
from ragclinic.signals.records import AttributeValue, Record, Span
from ragclinic.signals.stages import STAGE

SERVICE = "application"
STAGES: Mapping[str, str] = {
    **dict.fromkeys(("embed", "embedding", "embeddings", "embed_query", "query_embedding"), "embed"),
    **dict.fromkeys(
        ("search", "retrieve", "retrieval", "retriever", "vector_search", "similarity_search"), "search"
    ),
    **dict.fromkeys(("rerank", "reranking", "reranker"), "rerank"),
    **dict.fromkeys(("generate", "generation", "llm", "chat", "completion", "llm_call"), "generate"),
}
ATTRIBUTES = (
    ("gen_ai.usage.input_tokens", "prompt_tokens"),
    ("gen_ai.usage.output_tokens", "output_tokens"),
    ("gen_ai.usage.cache_read.input_tokens", "cached_tokens"),
    ("http.response.status_code", "status"),
)
TEXT_ATTRIBUTES = (
    ("tenant.id", "tenant"),
    ("session.id", "session"),
    ("input.value", "question"),
    ("output.value", "answer"),
)


def sniff(head: bytes) -> float:
    """Fairly sure where the first line is an object with a duration; barely where it only has a time."""
    first = head.lstrip().split(b"\n", 1)[0]
    if not first.startswith(b"{"):
        return 0.0
    try:
        line = json.loads(first)
        fields = Fields({})
        timed = any(look_up(line, name) is not None for names in TIMES.values() for name in names)
        lasts = any(fields.duration_ns(line, name) is not None for name in ("duration", *PARTS))
    except (ValueError, RecursionError):
        return 0.0
    return 0.6 if lasts else 0.5 if timed else 0.0


def read(stream: BinaryIO, origin: Origin, log: ReadLog, options: ReadOptions) -> Iterator[Record]:
    """Spans of requests and of stages; a row is a line. Lines without a duration are passed over."""
    fields = Fields(options.fields)
    reader = _Lines(fields, origin, options.tenant, log)
    for _, found, line in elements(stream, origin, log, {""}):
        here = origin.at(line)
        try:
            spans = reader.spans(obj(found, "the line"), here)
        except ValueError as error:
            log.reject("broken line", here, str(error))
            continue
        if spans:
            log.keep()
            yield from spans
        else:
            log.skip()
    if not log.kept:
        log.note("no line holds a duration under a known name: say which field does, --fields elapsed=duration_s")
    if not reader.saw_tokens:
        log.lacks("token counts", "log usage.prompt_tokens and usage.completion_tokens of each answer")


class _Lines:
    """Turns one line after another into spans."""

    def __init__(self, fields: Fields, origin: Origin, tenant: str | None, log: ReadLog) -> None:
        self._fields, self._origin, self._tenant, self._log = fields, origin, tenant, log
        self._number = 0
        self._undated_ns = origin.modified_ns or 0
        self.saw_tokens = False

    def spans(self, line: Mapping[str, Any], here: Origin) -> list[Span]:
        fields = self._fields
        durations = {name: fields.duration_ns(line, name) for name in ("duration", *PARTS)}
        parts = [(name, ns) for name in PARTS if (ns := durations[name])]
        total_ns = durations["duration"]
        if total_ns is None:
            if not parts:
                return []
            total_ns = sum(ns for _, ns in parts)
        start_ns, end_ns = self._interval(line, total_ns, here)
        self._number += 1
        id_ = fields.text(line, "trace_id")
        trace = trace_id(self._origin, self._number) if id_ is None else _trace(id_)
        attributes = self._attributes(line)
        error = _error(line, fields)
        stage = fields.text(line, "stage")
        if stage is not None and not parts and id_ is not None:
            known = STAGES.get(stage.lower(), stage.lower())
            return [
                Span(
                    trace,
                    f"{trace[:12]}{self._number:x}",
                    f"{trace[:12]}root",
                    stage,
                    start_ns,
                    end_ns,
                    SERVICE,
                    error,
                    {STAGE: known, **attributes},
                )
            ]
        name = fields.text(line, "name") or "request"
        found = _in_a_row(parts, start_ns, end_ns)
        return request_spans(trace, name, SERVICE, start_ns, end_ns, found, attributes, error)

    def _interval(self, line: Mapping[str, Any], total_ns: int, here: Origin) -> tuple[int, int]:
        for name in ("start_time", "end_time"):
            printed = self._fields.time(line, name)
            if printed is None:
                continue
            time_ns = self._time_ns(printed, here)
            return (time_ns, time_ns + total_ns) if name == "start_time" else (time_ns - total_ns, time_ns)
        self._log.note("lines without a time were laid one after another")
        self._undated_ns += total_ns
        return self._undated_ns - total_ns, self._undated_ns

    def _time_ns(self, printed: Any, here: Origin) -> int:
        seconds = number(printed)
        if seconds is not None:
            return epoch_ns(seconds)
        found = find_time(str(printed), here, self._log)
        if found is None:
            raise ValueError(f"{str(printed)[:40]!r}; expected a time (ISO 8601, or seconds since 1970)")
        return found

    def _attributes(self, line: Mapping[str, Any]) -> dict[str, AttributeValue]:
        found: dict[str, AttributeValue] = {}
        for name, ours in ATTRIBUTES:
            count = self._fields.count(line, ours)
            if count is not None:
                found[name] = count
        for name, ours in TEXT_ATTRIBUTES:
            text = self._fields.text(line, ours)
            if text is not None:
                found[name] = text
        tenant = None if self._tenant is None else look_up(line, self._tenant)
        if isinstance(tenant, str | int):
            found["tenant.id"] = str(tenant)
        first_ns = self._fields.duration_ns(line, "ttft")
        if first_ns is not None:
            found["gen_ai.response.time_to_first_chunk"] = first_ns / 1e9
        self.saw_tokens = self.saw_tokens or "gen_ai.usage.input_tokens" in found
        return found


def _in_a_row(parts: list[tuple[str, int]], start_ns: int, end_ns: int) -> list[Part]:
    """The stages one after another from the start; what they leave at the end stays unaccounted."""
    found, position = [], start_ns
    for name, ns in parts:
        stop = min(position + ns, end_ns)
        found.append(Part(name, position, stop))
        position = stop
    return found


def _trace(id_: str) -> str:
    """The id as it is where it is one of W3C's, so that other sources meet it; else a digest of it."""
    plain = id_.replace("-", "").lower()
    if len(plain) == 32 and all(c in "0123456789abcdef" for c in plain):
        return plain
    return trace_id(Origin(id_), 0)


def _error(line: Mapping[str, Any], fields: Fields) -> str | None:
    text = fields.text(line, "error")
    status = fields.count(line, "status")
    return text or (f"HTTP {status}" if status is not None and 400 <= status < 600 else None)


READER = Reader(
    id="json-lines",
    versions=("any", "Ollama API", "llama.cpp timings", "vLLM per-request metrics"),
    signals=("request spans", "stages", "token counts"),
    sniff=sniff,
    read=read,
)
