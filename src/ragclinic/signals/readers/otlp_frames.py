"""Cuts OTLP protobuf into messages of bounded size, whatever the size of the input.

Three framings are met: one message (a request body saved to a file), messages one after another (which protobuf
reads as one), and the collector's file exporter, which writes the size of each as four bytes, big-endian, before
it, and may compress each with zstd. A message too large for memory is cut between its spans.
"""

from collections.abc import Iterator
from typing import BinaryIO, Literal

import pyarrow as pa

from ragclinic.signals.readers.wire import FIXED, LENGTH_DELIMITED, Field, encoded, fields, varint, wrap

Content = Literal["spans", "metrics", "logs", "unknown"]

PIECE_BYTES = 4 * 1024 * 1024
"""Messages up to this size are taken whole."""
MAX_SPAN_BYTES = 32 * 1024 * 1024
SIZE_BYTES = 4
_ID_SIZES = (16, 8)
"""Of a span's first two fields, its trace id and its own; a metric begins with name and description."""
ZSTD = b"\x28\xb5\x2f\xfd"


def content_of(message: bytes) -> Content:
    """What a message exports, told by its innermost first entry: the three exports look alike further out."""
    try:
        entry = _first_entry(message)
        if entry is None:
            return "unknown"
        inner = {field.number: field for field in fields(message, entry.start, entry.end)}
    except ValueError:
        return "unknown"
    wires = {number: field.wire for number, field in inner.items()}
    sizes = tuple(inner[n].end - inner[n].start if n in inner else 0 for n in (1, 2))
    if wires.get(1, LENGTH_DELIMITED) != LENGTH_DELIMITED or wires.get(11) == 1:
        return "logs"
    if 1 in (wires.get(7), wires.get(8)) or (sizes == _ID_SIZES and wires.get(7) != LENGTH_DELIMITED):
        return "spans"
    return "metrics" if {5, 7, 9, 10, 11}.intersection(wires) else "unknown"


def _first_entry(message: bytes) -> Field | None:
    start, end = 0, len(message)
    for wanted in (1, 2, 2):
        found = next((f for f in fields(message, start, end) if f.number == wanted and f.wire == 2), None)
        if found is None:
            return None
        start, end = found.start, found.end
    return Field(2, 2, start, end)


def is_sized(head: bytes) -> bool:
    """Whether the input is written with the size of each message before it."""
    if len(head) < SIZE_BYTES + 2:
        return False
    size = int.from_bytes(head[:SIZE_BYTES], "big")
    inner = head[SIZE_BYTES:]
    starts = inner.startswith((ZSTD, b"{")) or (inner[0] == 0x0A and _fits(inner, size))
    # A bare message begins with 0x0a, which as a size would be 160 MB: the two cannot be mistaken.
    return 0 < size <= MAX_SPAN_BYTES and starts


def _fits(inner: bytes, size: int) -> bool:
    try:
        length, start = varint(inner, 1, len(inner))
    except ValueError:
        return False
    return start + length <= size


def sized_messages(stream: BinaryIO) -> Iterator[bytes]:
    """The messages of a file exporter's file, decompressed.

    Raises:
        ValueError: the input is cut off or damaged.
    """
    while head := stream.read(SIZE_BYTES):
        size = int.from_bytes(head, "big")
        if len(head) < SIZE_BYTES or not 0 < size <= MAX_SPAN_BYTES:
            raise ValueError(f"a message of {size} bytes; expected 1 to {MAX_SPAN_BYTES}")
        data = _exactly(stream, size)
        yield _plain(data) if data.startswith(ZSTD) else data


def _plain(data: bytes) -> bytes:
    try:
        with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
            plain: bytes = stream.read(MAX_SPAN_BYTES + 1)
    except OSError as error:
        raise ValueError(f"damaged zstd: {error}") from error
    if len(plain) > MAX_SPAN_BYTES:
        raise ValueError(f"a message of more than {MAX_SPAN_BYTES} bytes once decompressed")
    return plain


def messages(stream: BinaryIO) -> Iterator[bytes]:
    """Messages of bounded size, each with one resource, that together are the one in the stream.

    Raises:
        ValueError: the input is cut off or damaged; what came before was given.
    """
    while (tag := _stream_varint(stream)) is not None:
        if tag != 0x0A:
            raise ValueError(f"field {tag >> 3}, wire type {tag & 7}; expected an OTLP export (field 1)")
        size = _needed(stream)
        if size <= PIECE_BYTES:
            yield wrap(1, _exactly(stream, size))
        else:
            yield from _resource_pieces(stream, size)


def _resource_pieces(stream: BinaryIO, left: int) -> Iterator[bytes]:
    """One resource's export cut into several: its fields one by one, long scopes between their entries."""
    resource = b""
    while left > 0:
        tag, size, left = _header(stream, left)
        if tag == 0x12 and size > PIECE_BYTES:
            for scope in _scope_pieces(stream, size):
                yield wrap(1, resource + wrap(2, scope))
        elif tag == 0x12:
            yield wrap(1, resource + wrap(2, _exactly(stream, size)))
        elif tag == 0x0A and size <= PIECE_BYTES:
            resource = wrap(1, _exactly(stream, size))
        else:
            _exactly(stream, size)
        left -= size


def _scope_pieces(stream: BinaryIO, left: int) -> Iterator[bytes]:
    gathered: list[bytes] = []
    gathered_bytes = 0
    while left > 0:
        tag, size, left = _header(stream, left)
        value = _exactly(stream, size)
        left -= size
        if tag == 0x12:
            gathered.append(wrap(2, value))
            gathered_bytes += size
        if gathered_bytes >= PIECE_BYTES:
            yield b"".join(gathered)
            gathered, gathered_bytes = [], 0
    if gathered:
        yield b"".join(gathered)


def _header(stream: BinaryIO, left: int) -> tuple[int, int, int]:
    """Tag and size of a length-delimited field, and what is left after them."""
    tag = _needed(stream)
    size = _needed(stream) if tag & 7 == LENGTH_DELIMITED else FIXED.get(tag & 7, -1)
    left -= len(encoded(tag)) + (len(encoded(size)) if tag & 7 == LENGTH_DELIMITED else 0)
    if not 0 <= size <= left:
        raise ValueError(f"a field of {size} bytes where {left} are left; the input is damaged")
    return tag, size, left


def _exactly(stream: BinaryIO, size: int) -> bytes:
    if size > MAX_SPAN_BYTES:
        raise ValueError(f"a field of {size} bytes; expected at most {MAX_SPAN_BYTES}")
    data = stream.read(size)
    if len(data) < size:
        raise ValueError(f"the input ends {size - len(data)} bytes early; expected the whole file")
    return data


def _needed(stream: BinaryIO) -> int:
    value = _stream_varint(stream)
    if value is None:
        raise ValueError("the input ends within a field; expected the whole file")
    return value


def _stream_varint(stream: BinaryIO) -> int | None:
    value = shift = 0
    while byte := stream.read(1):
        value |= (byte[0] & 0x7F) << shift
        if byte[0] < 0x80:
            return value
        shift += 7
        if shift >= 70:
            raise ValueError("an integer without end; the input is damaged")
    if shift:
        raise ValueError("the input ends within an integer; expected the whole file")
    return None
