"""Jaeger JSON: what its UI downloads and its API v2 answers (`{"data": [trace, ...]}`), or a single trace.

Read: jaeger-ui of 2026-08 (`types/trace.ts`), Jaeger 1.x and 2.x. Times are microseconds. OpenTelemetry's status
comes as the tags `otel.status_code` and `error`, its events as logs with a field `event`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, BinaryIO

from ragclinic.signals.readers.elements import Element, elements
from ragclinic.signals.readers.fields import hex_id, items, obj, text, whole
from ragclinic.signals.readers.interpret import UNTOLD_ERROR, read_spans
from ragclinic.signals.readers.inventory import SPAN_SIGNALS
from ragclinic.signals.readers.reader import Origin, Reader, ReadLog, ReadOptions, Rows
from ragclinic.signals.readers.spans import SpanRow

_SNIFF = re.compile(rb'"(operationName|processID)"\s*:')
_MICRO_NS = 1000
_OWN_TAGS = frozenset(
    {"error", "otel.status_code", "otel.status_description", "span.kind", "internal.span.format"}
)


def sniff(head: bytes) -> float:
    """Sure where spans have an `operationName` or a `processID`."""
    return 0.9 if head.lstrip()[:1] in (b"{", b"[") and _SNIFF.search(head) and b'"traceID"' in head else 0.0


def parse_span(span: Any, processes: Mapping[str, Any], line: int) -> SpanRow:
    """A span of Jaeger JSON.

    Raises:
        ValueError: it is none; the message says what was found.
    """
    found = obj(span, "span")
    tags = pairs(found.get("tags"))
    process = processes.get(text(found, "processID") or "", found.get("process"))
    start_ns = whole(found, "startTime") * _MICRO_NS
    duration_ns = whole(found, "duration") * _MICRO_NS
    return SpanRow(
        trace_id=hex_id(found.get("traceID"), 32),
        span_id=hex_id(found.get("spanID"), 16),
        parent_id=_parent(found),
        name=text(found, "operationName") or "",
        start_ns=start_ns,
        end_ns=start_ns + duration_ns,
        service=(text(process, "serviceName") or "") if isinstance(process, Mapping) else "",
        error=_error(tags),
        attributes={key: value for key, value in tags.items() if key not in _OWN_TAGS},
        events=tuple(_event(log) for log in items(found.get("logs")) if isinstance(log, Mapping)),
        line=line,
    )


def pairs(tags: Any) -> dict[str, Any]:
    """A list of `{key, value}` as a mapping."""
    return {str(t["key"]): t.get("value") for t in items(tags) if isinstance(t, Mapping) and "key" in t}


def read(stream: BinaryIO, origin: Origin, log: ReadLog, options: ReadOptions) -> Iterator[Rows]:
    """A row is a span."""
    found = elements(stream, origin, log, {"data.item", "processes", "spans.item"})
    yield from read_spans(
        _rows(found), lambda pair, line: parse_span(pair[0], pair[1], line), origin, log, options
    )


def _rows(found: Iterable[Element]) -> Iterator[tuple[tuple[Any, Mapping[str, Any]], int]]:
    """Spans with the processes of their trace, which stand after them in whole traces."""
    processes: Mapping[str, Any] = {}
    for path, value, line in found:
        if path == "processes":
            processes = value if isinstance(value, Mapping) else {}
        elif path == "data.item" and isinstance(value, Mapping) and isinstance(value.get("spans"), list):
            known = value.get("processes")
            for span in value["spans"]:
                yield (span, known if isinstance(known, Mapping) else {}), line
        else:
            yield (value, processes), line


def _parent(span: Mapping[str, Any]) -> str | None:
    references = [r for r in items(span.get("references")) if isinstance(r, Mapping)]
    parents = [hex_id(r.get("spanID"), 16) for r in references if r.get("refType") == "CHILD_OF"]
    found = parents[0] if parents else hex_id(span.get("parentSpanID"), 16)
    return found if found.strip("0") else None


def _error(tags: Mapping[str, Any]) -> str | None:
    failed = str(tags.get("error", "")).lower() == "true" or tags.get("otel.status_code") == "ERROR"
    return str(tags.get("otel.status_description") or UNTOLD_ERROR) if failed else None


def _event(log: Mapping[str, Any]) -> tuple[str, int, Mapping[str, Any]]:
    told = pairs(log.get("fields"))
    return str(told.get("event", "")), whole(log, "timestamp") * _MICRO_NS, told


READER = Reader(
    id="jaeger-json",
    versions=("Jaeger 1.x", "Jaeger 2.x"),
    signals=SPAN_SIGNALS,
    sniff=sniff,
    read=read,
)
