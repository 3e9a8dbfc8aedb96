"""Zipkin JSON v2: a list of spans, a list of traces, or one of either a line.

Read: zipkin-api of 2024-01 (`zipkin2-api.yaml`). Times are microseconds, tags are texts: those whose name says
that they are numbers become numbers again. A server span may share its client's id (`shared`); it gets its own.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from ragclinic.signals.readers.elements import elements
from ragclinic.signals.readers.fields import hex_id, items, number, obj, text, whole
from ragclinic.signals.readers.interpret import UNTOLD_ERROR, read_spans
from ragclinic.signals.readers.inventory import SPAN_SIGNALS
from ragclinic.signals.readers.names import is_number_name
from ragclinic.signals.readers.reader import Origin, Reader, ReadLog, ReadOptions, Rows
from ragclinic.signals.readers.spans import SpanRow

_SNIFF = re.compile(rb'"(localEndpoint|remoteEndpoint|parentId|annotations|duration)"\s*:')
_MICRO_NS = 1000


def sniff(head: bytes) -> float:
    """Sure where objects have a `traceId`, an `id` and what only Zipkin has beside them."""
    if head.lstrip()[:1] not in (b"{", b"[") or b'"traceId"' not in head or b'"spanId"' in head:
        return 0.0
    return 0.85 if b'"id"' in head and b'"timestamp"' in head and _SNIFF.search(head) else 0.0


def parse_span(span: Any, line: int) -> SpanRow:
    """A span of Zipkin JSON v2.

    Raises:
        ValueError: it is none; the message says what was found.
    """
    found = obj(span, "span")
    told = found.get("tags")
    tags = {str(k): _typed(str(k), v) for k, v in told.items()} if isinstance(told, Mapping) else {}
    span_id, parent_id = hex_id(found.get("id"), 16), hex_id(found.get("parentId"), 16) or None
    if found.get("shared") is True:
        span_id, parent_id = f"{span_id}-server", span_id
    start_ns = whole(found, "timestamp") * _MICRO_NS
    duration_ns = whole(found, "duration") * _MICRO_NS
    endpoint = found.get("localEndpoint")
    return SpanRow(
        trace_id=hex_id(found.get("traceId"), 32),
        span_id=span_id,
        parent_id=parent_id,
        name=text(found, "name") or "",
        start_ns=start_ns,
        end_ns=start_ns + duration_ns if duration_ns else 0,
        service=(text(endpoint, "serviceName") or "") if isinstance(endpoint, Mapping) else "",
        error=_error(tags),
        attributes=tags,
        events=tuple(_event(a) for a in items(found.get("annotations")) if isinstance(a, Mapping)),
        line=line,
    )


def read(stream: BinaryIO, origin: Origin, log: ReadLog, options: ReadOptions) -> Iterator[Rows]:
    """A row is a span."""
    rows = ((element.value, element.line) for element in elements(stream, origin, log, {""}))
    yield from read_spans(rows, parse_span, origin, log, options)


def _typed(name: str, value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if value in ("true", "false") and name != "error":
        return value == "true"
    found = number(value) if is_number_name(name) else None
    if found is None:
        return value
    return int(value) if value.lstrip("-").isdecimal() else found


def _error(tags: dict[str, Any]) -> str | None:
    told = tags.pop("error", None)
    status = tags.pop("otel.status_code", None)
    if told is None and status != "ERROR":
        return None
    return str(told) if told not in (None, "", "true", True) else UNTOLD_ERROR


def _event(annotation: Mapping[str, Any]) -> tuple[str, int, Mapping[str, Any]]:
    """An annotation. OpenTelemetry writes `{"name": {attributes}}`, with or without braces, or the name alone."""
    value, time_ns = text(annotation, "value") or "", whole(annotation, "timestamp") * _MICRO_NS
    try:
        parsed = json.loads(value if value.startswith("{") else f"{{{value}}}")
    except (ValueError, RecursionError):
        return value, time_ns, {}
    name, inner = next(iter(parsed.items()), ("", {})) if isinstance(parsed, dict) else (value, {})
    return name, time_ns, inner if isinstance(inner, Mapping) else {}


READER = Reader(id="zipkin-json", versions=("Zipkin v2",), signals=SPAN_SIGNALS, sniff=sniff, read=read)
