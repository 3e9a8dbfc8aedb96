"""OTLP in protobuf: request bodies, and the collector's file exporter with `format: proto` or `compression: zstd`.

Read: opentelemetry-proto 1.7, collector-contrib fileexporter 0.13x. Spans go through columns (`otlp_columns`);
metrics, far fewer, through OTLP's own classes.
"""

import io
from collections.abc import Iterator
from typing import BinaryIO

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import DecodeError
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from ragclinic.signals.readers import otlp_json
from ragclinic.signals.readers.interpret import SpanReading
from ragclinic.signals.readers.inventory import SPAN_SIGNALS
from ragclinic.signals.readers.otlp_columns import columns_of
from ragclinic.signals.readers.otlp_frames import content_of, is_sized, messages, sized_messages
from ragclinic.signals.readers.otlp_metrics import MetricReading
from ragclinic.signals.readers.otlp_values import attributes_of
from ragclinic.signals.readers.reader import Origin, Reader, ReadLog, ReadOptions, Rows
from ragclinic.signals.readers.spans import SpanColumns
from ragclinic.signals.readers.streams import peeked
from ragclinic.signals.readers.wire import fields, varint
from ragclinic.signals.records import Record

BATCH_BYTES = 8 * 1024 * 1024


def sniff(head: bytes) -> float:
    """Sure of sizes before messages, nearly so of a message that has OTLP's shape as far as the head goes."""
    if is_sized(head):
        return 0.9
    return 0.85 if _has_shape(head) else 0.0


def read(stream: BinaryIO, origin: Origin, log: ReadLog, options: ReadOptions) -> Iterator[Record | Rows]:
    """A row is a span or a data point; a message that cannot be parsed counts as one bad row."""
    head, whole = peeked(stream)
    reading = _Reading(origin, log, options)
    try:
        for number, message in enumerate(sized_messages(whole) if is_sized(head) else messages(whole), start=1):
            yield from reading.message(message, number)
    except ValueError as error:
        log.reject("cut off or damaged", origin, f"{error}; what came before was read")
    yield from reading.finish()


class _Reading:
    """Gathers messages with spans into batches, and reads the others as they come."""

    def __init__(self, origin: Origin, log: ReadLog, options: ReadOptions) -> None:
        self._origin, self._log, self._options = origin, log, options
        self._spans = SpanReading(origin, log, options)
        self._metrics = MetricReading(origin, log)
        self._batch: list[bytes] = []
        self._batch_bytes = 0
        self._span_count = 0

    def message(self, message: bytes, number: int) -> Iterator[Record | Rows]:
        if message.startswith(b"{"):
            yield from otlp_json.read(io.BytesIO(message), self._origin, self._log, self._options)
            return
        match content_of(message):
            case "spans":
                self._batch.append(message)
                self._batch_bytes += len(message)
                if self._batch_bytes >= BATCH_BYTES:
                    yield from self._flush()
            case "metrics":
                yield from self._samples(message, number)
            case "logs":
                self._log.skip()
                self._log.note("log records were passed over: only spans and metrics are read from OTLP")
            case _ if message:
                self._unknown(message, number)

    def finish(self) -> Iterator[Rows]:
        yield from self._flush()
        self._spans.finish()

    def _flush(self) -> Iterator[Rows]:
        batch, self._batch, self._batch_bytes = self._batch, [], 0
        if not batch:
            return
        try:
            columns = columns_of(batch, self._span_count + 1)
        except ValueError:
            for message in batch:
                yield from self._one(message)
        else:
            yield from self._rows(columns)

    def _one(self, message: bytes) -> Iterator[Rows]:
        """A message of a batch that holds a damaged one."""
        try:
            columns = columns_of([message], self._span_count + 1)
        except ValueError as error:
            self._log.reject("unreadable message", self._origin.at(self._span_count + 1), str(error))
        else:
            yield from self._rows(columns)

    def _rows(self, columns: SpanColumns) -> Iterator[Rows]:
        self._span_count += len(columns)
        yield from self._spans.rows(columns)

    def _samples(self, message: bytes, number: int) -> Iterator[Record]:
        data = MetricsData()
        try:
            data.ParseFromString(message)
        except DecodeError as error:
            self._log.reject("unreadable message", self._origin.at(number), str(error))
            return
        for resource in data.resource_metrics:
            told = attributes_of([MessageToDict(pair) for pair in resource.resource.attributes])
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    yield from self._metrics.samples(MessageToDict(metric), told, number)

    def _unknown(self, message: bytes, number: int) -> None:
        """An export without spans is sound; anything else is not."""
        try:
            empty = all(field.number in (1, 2, 3) for field in fields(message)) and _has_shape(message)
        except ValueError:
            empty = False
        if empty:
            self._log.skip()
        else:
            self._log.reject(
                "unreadable message", self._origin.at(number), "not an OTLP export; expected spans or metrics"
            )


def _has_shape(head: bytes) -> bool:
    """Whether this begins an export: field 1 holds a resource (1) with attributes (1), or a scope (2)."""
    try:
        tag, at = varint(head, 0, len(head))
        size, at = varint(head, at, len(head))
        if tag != 0x0A or size < 2:
            return False
        inner, at = varint(head, at, len(head))
        inner_size, at = varint(head, at, len(head))
        if inner not in (0x0A, 0x12) or inner_size >= size:
            return False
        deeper = varint(head, at, len(head))[0] if inner_size and at < len(head) else 0x0A
    except ValueError:
        return False
    return deeper in (0x0A, 0x10, 0x12, 0x1A)


READER = Reader(
    id="otlp-protobuf",
    versions=("opentelemetry-proto 1.7", "collector fileexporter 0.13x"),
    signals=(*SPAN_SIGNALS, "metrics"),
    sniff=sniff,
    read=read,
)
