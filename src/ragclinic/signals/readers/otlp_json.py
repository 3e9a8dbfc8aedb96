"""OTLP in JSON: one document, or one object a line as the collector's file exporter writes it; traces, metrics.

Read: opentelemetry-proto 1.7 (spans, metrics), collector-contrib fileexporter 0.13x, `instrumentationLibrary*` of
before, snake_case as `MessageToDict(preserving_proto_field_name=True)` prints, identifiers in base64 as a plain
protobuf JSON printer writes them (the specification says hexadecimal).
"""

import base64
import binascii
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from ragclinic.signals.readers.elements import Element, elements
from ragclinic.signals.readers.fields import hex_id, items, obj, text, whole
from ragclinic.signals.readers.interpret import UNTOLD_ERROR, SpanReading
from ragclinic.signals.readers.inventory import SPAN_SIGNALS
from ragclinic.signals.readers.otlp_metrics import MetricReading
from ragclinic.signals.readers.otlp_values import attributes_of
from ragclinic.signals.readers.reader import Origin, Reader, ReadLog, ReadOptions, Rows
from ragclinic.signals.readers.spans import SpanBuilder, SpanRow
from ragclinic.signals.records import Record

_ROOTS = ("resourceSpans", "resource_spans", "result.resourceSpans")  # the last is Jaeger's API v3
_SCOPES = ("scopeSpans", "scope_spans", "instrumentationLibrarySpans")
_METRIC_ROOTS = ("resourceMetrics", "resource_metrics")
_METRIC_SCOPES = ("scopeMetrics", "scope_metrics", "instrumentationLibraryMetrics")
_MARKS = frozenset(f"{root}.item" for root in (*_ROOTS, *_METRIC_ROOTS))
_RESOURCES = frozenset(f"{root}.item.resource" for root in (*_ROOTS, *_METRIC_ROOTS))
_SPANS = frozenset(f"{root}.item.{scope}.item.spans.item" for root in _ROOTS for scope in _SCOPES)
_METRICS = frozenset(
    f"{root}.item.{scope}.item.metrics.item" for root in _METRIC_ROOTS for scope in _METRIC_SCOPES
)
_SNIFF = re.compile(rb'"resource_?([sS]pans|[mM]etrics)"\s*:')
_ERROR_CODES = frozenset({2, "2", "STATUS_CODE_ERROR"})


def sniff(head: bytes) -> float:
    """Sure where an object has `resourceSpans` or `resourceMetrics`."""
    return 0.95 if head.lstrip()[:1] in (b"{", b"[") and _SNIFF.search(head) else 0.0


def parse_span(span: Any, service: str, line: int) -> SpanRow:
    """A span of OTLP JSON.

    Raises:
        ValueError: it is none; the message says what was found.
    """
    found = obj(span, "span")
    told = found.get("status")
    status: Mapping[str, Any] = told if isinstance(told, Mapping) else {}
    error = (status.get("message") or UNTOLD_ERROR) if status.get("code") in _ERROR_CODES else None
    return SpanRow(
        trace_id=_id(found.get("traceId", found.get("trace_id")), 32),
        span_id=_id(found.get("spanId", found.get("span_id")), 16),
        parent_id=_parent(found.get("parentSpanId", found.get("parent_span_id"))),
        name=text(found, "name") or "",
        start_ns=whole(found, "startTimeUnixNano", "start_time_unix_nano"),
        end_ns=whole(found, "endTimeUnixNano", "end_time_unix_nano"),
        service=service,
        error=str(error) if error is not None else None,
        attributes=attributes_of(found.get("attributes")),
        events=tuple(_event(event) for event in items(found.get("events")) if isinstance(event, Mapping)),
        line=line,
    )


def read(stream: BinaryIO, origin: Origin, log: ReadLog, options: ReadOptions) -> Iterator[Record | Rows]:
    """A row is a span, or a data point of a metric."""
    reading, builder, metrics = SpanReading(origin, log, options), SpanBuilder(), MetricReading(origin, log)
    resource: Mapping[str, Any] = {}
    for element in elements(stream, origin, log, _RESOURCES | _SPANS | _METRICS, marks=_MARKS):
        if element.path in _MARKS:
            resource = {}
        elif element.path in _RESOURCES:
            resource = _resource(element.value)
        elif element.path in _METRICS:
            yield from metrics.samples(element.value, resource, element.line)
        else:
            _add(builder, element, str(resource.get("service.name", "")), origin, log)
        if builder.full:
            yield from reading.rows(builder.take())
    yield from reading.rows(builder.take())
    reading.finish()


def _add(builder: SpanBuilder, element: Element, service: str, origin: Origin, log: ReadLog) -> None:
    try:
        builder.add(parse_span(element.value, service, element.line))
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        log.reject("unreadable span", origin.at(element.line), str(error) or json.dumps(element.value)[:80])


def _resource(value: Any) -> dict[str, Any]:
    try:
        return attributes_of(value.get("attributes")) if isinstance(value, Mapping) else {}
    except (ValueError, TypeError, OverflowError, RecursionError):
        return {}


def _id(value: Any, digits: int) -> str:
    """An identifier in hexadecimal, as the specification has it, or in base64 as a plain protobuf printer does."""
    if isinstance(value, str) and len(value) != digits:
        try:
            raw = base64.b64decode(value, validate=True)
        except (ValueError, binascii.Error):
            raw = b""
        if len(raw) * 2 == digits:
            return raw.hex()
    return hex_id(value, digits)


def _parent(value: Any) -> str | None:
    found = _id(value, 16)
    return found if found.strip("0") else None


def _event(event: Mapping[str, Any]) -> tuple[str, int, Mapping[str, Any]]:
    time_ns = whole(event, "timeUnixNano", "time_unix_nano")
    return text(event, "name") or "", time_ns, attributes_of(event.get("attributes"))


READER = Reader(
    id="otlp-json",
    versions=("opentelemetry-proto 1.7", "collector fileexporter 0.13x"),
    signals=(*SPAN_SIGNALS, "metrics"),
    sniff=sniff,
    read=read,
)
