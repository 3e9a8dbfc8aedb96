"""Bodies of Prometheus remote write, version 1 and 2: protobuf compressed with snappy's block format.

A file holds one body; `parse_body`
serves a receiver. Native histograms become classic buckets (`_bucket` with `le`), so that one histogram code
serves all. Stale markers (a special NaN that says a series ended) are sound and hold nothing for us.
"""

import math
import struct
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

from ragclinic.signals.readers.clock import epoch_ns
from ragclinic.signals.readers.prometheus_lacks import SeenNames
from ragclinic.signals.readers.reader import Origin, Reader, ReadLog, ReadOptions
from ragclinic.signals.records import Record, Sample

NAME = "__name__"
MAX_BODY_BYTES = 32 * 1024 * 1024
"""Prometheus sends at most some 2,000 samples a body, well under a megabyte."""
MAX_PLAIN_BYTES = 4 * MAX_BODY_BYTES
STALE = struct.pack("<Q", 0x7FF0000000000002)
MAX_BUCKETS = 100_000
CUSTOM_BUCKETS = -53


def sniff(head: bytes) -> float:
    """Sure where a snappy block begins with a series or a symbol table whose first strings are labels."""
    size, start = _plain_bytes(head)
    if size is None or not 8 <= size <= MAX_PLAIN_BYTES:
        return 0.0
    # The first bytes of a snappy block are a literal: a tag, then the message as it is.
    beginning = head[start : start + 256]
    if beginning[1:4] in (b"\x22\x00\x22",) or beginning[2:5] == b"\x22\x00\x22":  # symbols begin with ""
        return 0.9
    return 0.9 if NAME.encode() in beginning and b"\x0a" in beginning[:4] else 0.0


def parse_body(body: bytes, origin: Origin, log: ReadLog) -> Iterator[Sample]:
    """The samples of one body of either version, each counted in `log`.

    Raises:
        ValueError: not snappy, larger than allowed, or no write request.
    """
    from google.protobuf.message import DecodeError  # heavy, and only remote write needs it

    from ragclinic.signals.readers.prometheus_proto import request_class

    request = request_class()()
    try:
        request.ParseFromString(_plain(body))
    except DecodeError as error:
        raise ValueError(f"{error}; expected a write request") from error
    symbols = request.symbols
    for number, series in enumerate(request.timeseries_1, 1):
        yield from _samples(series, {label.name: label.value for label in series.labels}, origin.at(number), log)
    for number, series in enumerate(request.timeseries_2, 1):
        labels = _resolved(series.labels_refs, symbols)
        if labels is None:
            rows = len(series.samples) + len(series.histograms)
            log.reject(
                "label not in the symbol table", origin.at(number), f"{len(symbols)} symbols; expected more", rows
            )
            continue
        yield from _samples(series, labels, origin.at(number), log)


def read(stream: BinaryIO, origin: Origin, log: ReadLog, _options: ReadOptions) -> Iterator[Record]:
    """One sample a sample, some for each native histogram; a row is either."""
    body = stream.read(MAX_BODY_BYTES + 1)
    names = SeenNames()
    try:
        for sample in parse_body(body, origin, log):
            names.add(sample.name)
            yield sample
    except ValueError as error:
        log.reject("not a write request", origin, str(error))
    names.say(log)


def _plain(body: bytes) -> bytes:
    import cramjam  # only remote write needs it

    size, _ = _plain_bytes(body)
    if size is None or len(body) > MAX_BODY_BYTES or size > MAX_PLAIN_BYTES:
        raise ValueError(f"{len(body)} bytes that say they hold {size}; expected at most {MAX_PLAIN_BYTES}")
    try:
        return bytes(cramjam.snappy.decompress_raw(body))
    except cramjam.DecompressionError as error:
        raise ValueError(f"not a snappy block ({error}); expected a body as Prometheus sends it") from error


def _plain_bytes(body: bytes) -> tuple[int | None, int]:
    """The size that a snappy block says it holds, and where that number ends."""
    size = 0
    for index, byte in enumerate(body[:5]):
        size |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return size, index + 1
    return None, 0


def _samples(series: Any, labels: dict[str, str], here: Origin, log: ReadLog) -> Iterator[Sample]:
    rows = len(series.samples) + len(series.histograms)
    name = labels.pop(NAME, "")
    if not name:
        log.reject("series without a name", here, f"{labels}; expected a label {NAME}", rows)
        return
    for sample in series.samples:
        if struct.pack("<d", sample.value) == STALE:
            log.skip()
        elif not math.isfinite(sample.value):
            log.reject("value not finite", here, f"{name} is {sample.value}; expected a number")
        elif (time_ns := _time_ns(sample.timestamp, here, log)) is not None:
            log.keep()
            yield Sample(time_ns, name, sample.value, labels)
    for histogram in series.histograms:
        if (time_ns := _time_ns(histogram.timestamp, here, log)) is None:
            continue
        try:
            found = list(parse_histogram(histogram))
        except ValueError as error:
            log.reject("broken native histogram", here, str(error))
            continue
        log.keep()
        for suffix, edge, value in found:
            yield Sample(time_ns, name + suffix, value, labels if edge is None else {**labels, "le": edge})


def parse_histogram(histogram: Any) -> Iterator[tuple[str, str | None, float]]:
    """A native histogram as suffix, upper edge and cumulative count; what lies at or below zero is one bucket.

    Raises:
        ValueError: spans and counts do not fit each other, or the schema is unknown.
    """
    if not (-4 <= histogram.schema <= 8 or histogram.schema == CUSTOM_BUCKETS):
        raise ValueError(f"schema {histogram.schema}; expected -4 to 8 or {CUSTOM_BUCKETS}")
    counts = list(histogram.positive_counts) or _undelta(histogram.positive_deltas)
    indexes = _indexes(histogram.positive_spans)
    if len(counts) != len(indexes):
        raise ValueError(f"{len(counts)} counts in {len(indexes)} buckets; expected as many")
    inside = sum(counts)
    total = float(histogram.count_float or histogram.count_int)
    # Whatever is not in a positive bucket lies at zero or below it: latencies are never negative.
    below = max(0.0, total - inside)
    yield "_bucket", str(float(histogram.zero_threshold)), below
    for index, count in zip(indexes, counts, strict=True):
        below += count
        yield "_bucket", str(_edge(index, histogram.schema, histogram.custom_values)), below
    yield "_bucket", "+Inf", max(total, below)
    yield "_sum", None, float(histogram.sum)
    yield "_count", None, total


def _indexes(spans: Sequence[Any]) -> list[int]:
    found: list[int] = []
    position = 0
    for span in spans:
        position += span.offset
        if len(found) + span.length > MAX_BUCKETS:
            raise ValueError(f"{span.length} buckets in a span; expected at most {MAX_BUCKETS}")
        found.extend(range(position, position + span.length))
        position += span.length
    return found


def _undelta(deltas: Sequence[int]) -> list[float]:
    counts, count = [], 0
    for delta in deltas:
        count += delta
        counts.append(float(count))
    return counts


def _edge(index: int, schema: int, custom: Sequence[float]) -> float:
    """The upper edge of a bucket: a power of 2 ** (2 ** -schema), or one of the edges that came along."""
    if schema == CUSTOM_BUCKETS:
        return custom[index] if 0 <= index < len(custom) else math.inf
    exponent = index * 2.0**-schema
    return math.inf if exponent > 1023 else 2.0**exponent


def _time_ns(milliseconds: int, here: Origin, log: ReadLog) -> int | None:
    try:
        return epoch_ns(milliseconds / 1000)
    except ValueError as error:
        log.reject("time out of range", here, str(error))
        return None


def _resolved(references: Sequence[int], symbols: Sequence[str]) -> dict[str, str] | None:
    if len(references) % 2 or any(reference >= len(symbols) for reference in references):
        return None
    words = [symbols[reference] for reference in references]
    return dict(zip(words[::2], words[1::2], strict=True))


READER = Reader(
    id="prometheus-remote-write",
    versions=("remote write 1.0", "remote write 2.0"),
    signals=("kv usage", "queue", "preemptions", "prefix hits", "latency histograms", "device memory", "pcie"),
    sniff=sniff,
    read=read,
)
