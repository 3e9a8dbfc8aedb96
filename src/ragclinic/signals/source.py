"""Opens what people hand over: files, folders, standard input; plain, gzip or zstd, told by their first bytes.

What comes out is a stream of plain bytes and its first 64 KiB, by which the format is recognised; names of files
are never looked at. Memory stays bounded whatever the size. The stream of a damaged or exploding file ends where
the damage is, and `Opened.damage` then says what it was, so what came before it is still read.
"""

import codecs
import io
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import BinaryIO, NamedTuple

import pyarrow as pa

from ragclinic.errors import BadInput
from ragclinic.signals.readers.reader import HEAD_BYTES, Origin
from ragclinic.signals.readers.streams import stream_of
from ragclinic.signals.recording import is_recording

CHUNK_BYTES = 256 * 1024
STDIN = "-"
MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
ARCHIVES = {
    b"PK\x03\x04": "zip archive",
    b"7z\xbc\xaf": "7z archive",
    b"\xfd7zXZ": "xz file",
    b"BZh": "bzip2 file",
}
# PowerShell's `>` writes UTF-16, so `nvidia-smi > gpu.csv` on Windows does.
UTF_16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
# Logs compress 10 to 100 times, repeated metric pages some 300 times; gzip cannot pass 1,032.
MAX_EXPANSION = 500
FREE_EXPANSION_BYTES = 64 * 1024 * 1024
"""A small file may expand as it likes: the ratio counts from here on."""


@dataclass(frozen=True, slots=True)
class Source:
    """One input, not yet opened. `size_bytes` is None where it cannot be known (a pipe)."""

    path: str
    open: Callable[[], BinaryIO]
    size_bytes: int | None = None
    modified_ns: int | None = None


class Opened(NamedTuple):
    """An open input: the plain stream from its beginning, and that beginning.

    `damage` fills once the stream was read to its end, where that end is not the file's.
    """

    stream: BinaryIO
    head: bytes
    origin: Origin
    damage: list[BadInput]


OnBytes = Callable[[int], None]


def find_sources(paths: Sequence[str | Path], stdin: BinaryIO | None = None) -> list[Source]:
    """The inputs behind paths, folders searched through in order of name, hidden files left out; `-` is `stdin`.

    Raises:
        BadInput: a path that does not exist, an empty folder, or a recording, which needs no import.
    """
    return [source for path in paths for source in _sources(Path(path), stdin)]


@contextmanager
def open_source(source: Source, on_bytes: OnBytes = lambda _: None) -> Iterator[Opened]:
    """Opens an input. `on_bytes` is told how many bytes were taken from the file, before decompression.

    Raises:
        BadInput: it cannot be opened, is an archive, or is damaged from its very beginning.
    """
    try:
        file = source.open()
    except OSError as error:
        raise BadInput(f"{source.path}: {error.strerror}; expected a readable file; check it") from error
    with file:
        counted = _Counted(file, source.path, on_bytes)
        damage: list[BadInput] = []
        chunks = _until_damage(_decoded(_decompressed(counted, source.path)), damage)
        seen = _first(chunks)
        if damage and not any(seen):
            raise damage[0]
        origin = Origin(source.path, modified_ns=source.modified_ns)
        yield Opened(stream_of(chain(seen, chunks)), b"".join(seen)[:HEAD_BYTES], origin, damage)


def _sources(path: Path, stdin: BinaryIO | None) -> Iterator[Source]:
    if str(path) == STDIN:
        yield Source("stdin", lambda: io.BufferedReader(_Borrowed(stdin or sys.stdin.buffer)))
    elif path.is_dir():
        yield from _folder(path)
    elif path.exists():
        yield _file(path)
    else:
        raise BadInput(f"{path}: no such file or folder; expected one to read; check the path")


def _folder(folder: Path) -> Iterator[Source]:
    if is_recording(folder):
        raise BadInput(f"{folder}: holds a recording already; expected files to import; diagnose it as it is")
    found = [
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    ]
    if not found:
        raise BadInput(f"{folder}: no file in it; expected traces, metrics or logs; check the path")
    yield from map(_file, found)


def _file(path: Path) -> Source:
    state = path.stat()
    size = state.st_size if path.is_file() else None
    return Source(str(path), lambda: path.open("rb"), size, state.st_mtime_ns)


class _Counted:
    """A file that can be peeked into, tells how much was read of it, and turns read errors into `BadInput`."""

    def __init__(self, file: BinaryIO, path: str, on_bytes: OnBytes) -> None:
        self.taken_bytes = 0
        self.closed = False
        self._file, self._path, self._on_bytes = file, path, on_bytes
        self._peeked = b""

    def peek(self) -> bytes:
        self._peeked = self._peeked or self.read()
        return self._peeked

    def read(self, size: int = CHUNK_BYTES) -> bytes:
        if self._peeked:
            data, self._peeked = self._peeked[:size], self._peeked[size:]
            return data
        try:
            data = self._file.read(size)
        except OSError as error:
            raise BadInput(
                f"{self._path}: {error.strerror} after {self.taken_bytes} bytes; check the disk"
            ) from error
        self.taken_bytes += len(data)
        self._on_bytes(len(data))
        return data

    def close(self) -> None:
        self.closed = True


def _decompressed(file: _Counted, path: str) -> Iterator[bytes]:
    first = file.peek()
    for magic, what in ARCHIVES.items():
        if first.startswith(magic):
            raise BadInput(f"{path}: a {what}; expected plain, gzip or zstd; unpack it first")
    compression = next((name for magic, name in MAGIC.items() if first.startswith(magic)), None)
    if compression is None:
        yield from iter(file.read, b"")
    else:
        yield from _inflated(file, compression, path)


def _inflated(file: _Counted, compression: str, path: str) -> Iterator[bytes]:
    out_bytes = 0
    try:
        stream = pa.CompressedInputStream(pa.PythonFile(file, "r"), compression)
        while data := stream.read(CHUNK_BYTES):
            out_bytes += len(data)
            if out_bytes > FREE_EXPANSION_BYTES and out_bytes > MAX_EXPANSION * file.taken_bytes:
                raise BadInput(
                    f"{path}: expands more than {MAX_EXPANSION} times ({file.taken_bytes} bytes to {out_bytes}); "
                    "expected an honest file; decompress it yourself if you trust it"
                )
            yield data
    except OSError as error:
        raise BadInput(
            f"{path}: damaged {compression} ({error}) after {out_bytes} plain bytes; expected a whole file; "
            "what came before was read"
        ) from error


def _decoded(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """UTF-8 without byte order mark, from UTF-16 with one; anything else as it is."""
    first = next(chunks, b"")
    encoding = next((name for mark, name in UTF_16.items() if first.startswith(mark)), None)
    if encoding is None:
        yield first.removeprefix(codecs.BOM_UTF8)
        yield from chunks
        return
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    for chunk in chain([first[2:]], chunks):
        yield decoder.decode(chunk).encode("utf-8", "replace")
    yield decoder.decode(b"", final=True).encode("utf-8", "replace")


def _until_damage(chunks: Iterator[bytes], damage: list[BadInput]) -> Iterator[bytes]:
    try:
        yield from chunks
    except BadInput as error:
        damage.append(error)


def _first(chunks: Iterator[bytes]) -> list[bytes]:
    """The chunks that hold the head."""
    seen: list[bytes] = []
    while sum(map(len, seen)) < HEAD_BYTES and (chunk := next(chunks, None)) is not None:
        seen.append(chunk)
    return seen


class _Borrowed(io.RawIOBase):
    """A stream that is read and left open for its owner."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)
