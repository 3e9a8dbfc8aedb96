"""Reads the header of a GGUF file: its keys and the shapes of its tensors, never the weights.

The format is the specification's (ggml `docs/gguf.md`, versions 2 and 3). The package `gguf` reads the same and
is what the tests compare with, but makes an array of every token of the vocabulary: 9 s for 49,152 tokens where
this takes 0.1 s, and a plan is to answer within a second.
"""

import struct
from collections.abc import Iterator, Mapping
from typing import BinaryIO, NamedTuple

from ragclinic.errors import BadInput
from ragclinic.physics.ggml import BY_NUMBER, GgmlType

SCALARS = ("<B", "<b", "<H", "<h", "<I", "<i", "<f", "<?", "", "", "<Q", "<q", "<d")
"""How the value types 0 to 12 are packed; 8 is a string and 9 an array."""
STRING, ARRAY = 8, 9
MOST_ENTRIES = 1_000_000
"""More keys, tensors or dimensions than any model has: the file is damaged."""
MOST_TEXT_BYTES = 64 << 20
Value = int | float | bool | str | list[int | float | bool] | None


class Tensor(NamedTuple):
    """One tensor: its name, its dimensions, its type and where it lies behind the header."""

    name: str
    shape: tuple[int, ...]
    type: GgmlType
    offset_bytes: int

    @property
    def elements(self) -> int:
        """How many numbers it holds."""
        count = 1
        for width in self.shape:
            count *= width
        return count

    @property
    def size_bytes(self) -> int:
        """Its exact size: whole blocks."""
        return self.elements // self.type.block_elements * self.type.block_bytes


class Header(NamedTuple):
    """Keys and tensors. Of an array of texts only the length is kept, as `<key>.length`."""

    values: Mapping[str, Value]
    tensors: tuple[Tensor, ...]


def read_header(stream: BinaryIO, where: str) -> Header:
    """The header at the start of the stream.

    Raises:
        BadInput: it is no GGUF file, a version not known, cut off or damaged.
    """
    magic = stream.read(4)
    if magic != b"GGUF":
        raise BadInput(f"{where}: begins with {magic!r}; expected GGUF; give a GGUF model file")
    try:
        version = _number(stream, "<I")
        if version not in (2, 3):
            raise BadInput(f"{where}: GGUF version {version}; expected 2 or 3; convert it with a newer llama.cpp")
        tensor_count, value_count = _count(stream), _count(stream)
        values: dict[str, Value] = {}
        for _ in range(value_count):
            key = _text(stream)
            values.update(_value(stream, key, int(_number(stream, "<I"))))
        return Header(values, tuple(_tensors(stream, tensor_count)))
    except (struct.error, ValueError, KeyError, IndexError) as error:
        raise BadInput(
            f"{where}: the GGUF header is cut off or damaged at byte {stream.tell()} ({error}); "
            "expected whole keys and tensors; download the file again"
        ) from error


def _tensors(stream: BinaryIO, count: int) -> Iterator[Tensor]:
    for _ in range(count):
        name = _text(stream)
        dimensions = int(_number(stream, "<I"))
        if dimensions > 8:
            raise ValueError(f"a tensor of {dimensions} dimensions")
        shape = tuple(int(_number(stream, "<Q")) for _ in range(dimensions))
        kind = BY_NUMBER[int(_number(stream, "<I"))]
        yield Tensor(name, shape, kind, int(_number(stream, "<Q")))


def _value(stream: BinaryIO, key: str, kind: int) -> dict[str, Value]:
    if kind == STRING:
        return {key: _text(stream)}
    if kind != ARRAY:
        return {key: _number(stream, SCALARS[kind])}
    inner, length = int(_number(stream, "<I")), int(_number(stream, "<Q"))
    if inner == STRING:
        for _ in range(length):
            _skip_text(stream)
        return {f"{key}.length": length}
    form = SCALARS[inner]
    packed = stream.read(struct.calcsize(form) * min(length, MOST_TEXT_BYTES))
    if len(packed) != struct.calcsize(form) * length:
        raise ValueError(f"array {key} is cut off")
    return {key: [row[0] for row in struct.iter_unpack(form, packed)]}


def _number(stream: BinaryIO, form: str) -> int | float | bool:
    value: int | float | bool = struct.unpack(form, stream.read(struct.calcsize(form)))[0]
    return value


def _count(stream: BinaryIO) -> int:
    count = int(_number(stream, "<Q"))
    if count > MOST_ENTRIES:
        raise ValueError(f"{count} entries")
    return count


def _text(stream: BinaryIO) -> str:
    length = int(_number(stream, "<Q"))
    if length > MOST_TEXT_BYTES:
        raise ValueError(f"a text of {length} bytes")
    packed = stream.read(length)
    if len(packed) != length:
        raise ValueError("a text is cut off")
    return packed.decode("utf-8")


def _skip_text(stream: BinaryIO) -> None:
    length = int(_number(stream, "<Q"))
    if length > MOST_TEXT_BYTES or len(stream.read(length)) != length:
        raise ValueError("a text is cut off")
