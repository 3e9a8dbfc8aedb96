"""Protobuf on the wire, as far as it is needed to cut messages without parsing them."""

from collections.abc import Iterator
from typing import NamedTuple

LENGTH_DELIMITED = 2
FIXED = {1: 8, 5: 4}
"""Bytes of the wire types that have a fixed size."""


class Field(NamedTuple):
    """A field on the wire: its number, wire type, and where its value stands."""

    number: int
    wire: int
    start: int
    end: int


def fields(data: bytes, start: int = 0, end: int | None = None) -> Iterator[Field]:
    """The fields of a message, values not looked into.

    Raises:
        ValueError: this is no protobuf, or it is cut off.
    """
    end = len(data) if end is None else end
    while start < end:
        tag, start = varint(data, start, end)
        number, wire = tag >> 3, tag & 7
        if number == 0:
            raise ValueError("field number 0; expected protobuf")
        if wire == LENGTH_DELIMITED:
            size, start = varint(data, start, end)
        elif wire in FIXED:
            size = FIXED[wire]
        elif wire == 0:
            size = varint(data, start, end)[1] - start
        else:
            raise ValueError(f"wire type {wire}; expected protobuf")
        if start + size > end:
            raise ValueError(
                f"a field of {size} bytes where {end - start} are left; the input is cut off or damaged"
            )
        yield Field(number, wire, start, start + size)
        start += size


def varint(data: bytes, start: int, end: int) -> tuple[int, int]:
    """A variable-length integer and the place after it."""
    value = shift = 0
    while start < end and shift < 70:
        byte = data[start]
        start += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, start
        shift += 7
    raise ValueError("an integer without end; the input is cut off or damaged")


def wrap(number: int, value: bytes) -> bytes:
    """A length-delimited field on the wire."""
    return encoded(number << 3 | LENGTH_DELIMITED) + encoded(len(value)) + value


def encoded(value: int) -> bytes:
    """A variable-length integer on the wire."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
