"""Chunks of bytes as a stream."""

import io
from collections.abc import Iterable
from itertools import chain
from typing import BinaryIO

BUFFER_BYTES = 256 * 1024
HEAD_BYTES = 64 * 1024


def stream_of(chunks: Iterable[bytes]) -> BinaryIO:
    """A buffered stream that takes chunks as it needs them."""
    return io.BufferedReader(_Chunks(chunks), BUFFER_BYTES)


def peeked(stream: BinaryIO, size: int = HEAD_BYTES) -> tuple[bytes, BinaryIO]:
    """The beginning of a stream, and a stream that still has it."""
    head = stream.read(size)
    return head, stream_of(chain([head], iter(lambda: stream.read(BUFFER_BYTES), b"")))


class _Chunks(io.RawIOBase):
    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # the typeshed names it more widely
        while not self._rest:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._rest = memoryview(chunk)
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size
