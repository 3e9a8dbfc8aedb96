"""Elements of JSON of any size: one document, one object a line, or documents one after another; memory bounded.

A reader asks for elements by dotted paths (`resourceSpans.item.resource`; `item` is a list's entry, an empty path
the outermost object) and gets them in the order in which they stand, `marks` with no value where such an object
begins. An outermost list is looked through. A broken or endless line is counted once and the rest is read.
"""

import json
from collections.abc import Collection, Iterator
from itertools import chain, pairwise
from typing import Any, BinaryIO, NamedTuple

from ragclinic.signals.readers.json_parser import Found, Paths, PieceParser
from ragclinic.signals.readers.reader import Origin, ReadLog
from ragclinic.signals.readers.streams import stream_of

WHOLE_BYTES = 4 * 1024 * 1024
"""What is read at once: a document or a line up to this size. Larger ones are parsed piece by piece."""
PIECE_BYTES = 256 * 1024
"""The parser looks at an unfinished string from its beginning again with each piece, so not too small."""
BAD_JSON = "unreadable JSON"


class Element(NamedTuple):
    """A value and its path; `line` counts lines, or elements where the input is one document."""

    path: str
    value: Any
    line: int


def elements(
    stream: BinaryIO, origin: Origin, log: ReadLog, wanted: Collection[str], marks: Collection[str] = ()
) -> Iterator[Element]:
    """The elements at these paths; what cannot be parsed is counted in `log`."""
    paths = Paths(frozenset(wanted), frozenset(marks))
    first = stream.read(WHOLE_BYTES + 1)
    if len(first) <= WHOLE_BYTES:
        yield from _small(first, origin, log, paths)
        return
    rest = stream_of(chain([first], iter(lambda: stream.read(PIECE_BYTES), b"")))
    line, broken, _ = first.partition(b"\n")
    if broken and _loads(line) is not None:
        yield from _lines(rest, origin, log, paths)
    else:
        yield from _Pieces(rest, origin, log, paths).elements(1)


def _small(data: bytes, origin: Origin, log: ReadLog, paths: Paths) -> Iterator[Element]:
    whole = _loads(data)
    if whole is not None:
        for number, (path, value) in enumerate(_walk(whole, "", paths), start=1):
            yield Element(path, value, number)
        return
    for line, group in _groups(data.splitlines(keepends=True)):
        bare = _bare(group)
        value = _loads(bare)
        if value is None:
            yield from _Pieces(stream_of([bare]), origin, log, paths).elements(line)
        else:
            yield from (Element(path, found, line) for path, found in _walk(value, "", paths))


def _lines(stream: BinaryIO, origin: Origin, log: ReadLog, paths: Paths) -> Iterator[Element]:
    number = 0
    while raw := stream.readline(WHOLE_BYTES + 1):
        number += 1
        if len(raw) > WHOLE_BYTES and not raw.endswith(b"\n"):
            whole_line = stream_of(chain([raw], _to_line_end(stream)))
            yield from _Pieces(whole_line, origin, log, paths).elements(number, one_line=True)
            continue
        if not raw.strip():
            continue
        value = _loads(raw)
        if value is None:
            yield from _Pieces(stream_of([raw]), origin, log, paths).elements(number, one_line=True)
        else:
            yield from (Element(path, found, number) for path, found in _walk(value, "", paths))


def _to_line_end(stream: BinaryIO) -> Iterator[bytes]:
    while raw := stream.readline(PIECE_BYTES):
        yield raw
        if raw.endswith(b"\n"):
            return


class _Pieces:
    """Parses a stream piece by piece, and starts anew at the next line that opens an object after a fault."""

    def __init__(self, stream: BinaryIO, origin: Origin, log: ReadLog, paths: Paths) -> None:
        self._stream, self._origin, self._log, self._paths = stream, origin, log, paths
        self._parser: PieceParser | None = PieceParser(paths)

    def elements(self, line: int, one_line: bool = False) -> Iterator[Element]:
        """The elements, the first line being number `line`."""
        at_start = True
        while piece := self._stream.readline(PIECE_BYTES):
            opens = at_start and piece[:1] in (b"{", b"[")
            if self._parser is None and opens:
                self._parser = PieceParser(self._paths)
            if self._parser is not None:
                yield from (
                    Element(path, value, line) for path, value in self._feed(self._parser, piece, opens, line)
                )
            at_start = piece.endswith(b"\n")
            line += at_start and not one_line
        if self._parser is not None and not self._parser.complete():
            self._log.reject(
                BAD_JSON, self._origin.at(line), "the input ends inside a value; expected the whole file"
            )

    def _feed(self, parser: PieceParser, piece: bytes, opens: bool, line: int) -> list[Found]:
        old = parser.used
        found = parser.feed(piece)
        if parser.fault is None:
            return found
        self._log.reject(BAD_JSON, self._origin.at(line), f"{parser.fault}; expected JSON")
        self._parser = None
        if opens and old:
            # The fault may be that the line before was cut off: this line is tried on its own.
            fresh = PieceParser(self._paths)
            again = fresh.feed(piece)
            if fresh.fault is None:
                self._parser, found = fresh, again
        return found


def _walk(value: Any, path: str, paths: Paths) -> Iterator[tuple[str, Any]]:
    if isinstance(value, list) and path == "":
        for entry in value:
            yield from _walk(entry, path, paths)
    elif path in paths.wanted:
        yield path, value
    elif isinstance(value, dict):
        if path in paths.marks:
            yield path, None
        inner = [(f"{path}.{key}" if path else key, entry) for key, entry in value.items()]
        # What is wanted whole (a resource) first: it says what the lists beside it belong to.
        for name, entry in sorted(inner, key=lambda pair: pair[0] not in paths.wanted):
            yield from _walk(entry, name, paths)
    elif isinstance(value, list):
        for entry in value:
            yield from _walk(entry, f"{path}.item", paths)


def _groups(lines: list[bytes]) -> Iterator[tuple[int, bytes]]:
    """Runs of lines, each from a line that opens an object or list to the next such line; empty runs left out."""
    starts = [i for i, line in enumerate(lines) if i == 0 or line[:1] in (b"{", b"[")]
    for start, end in pairwise([*starts, len(lines)]):
        run = b"".join(lines[start:end])
        if run.strip():
            yield start + 1, run


def _bare(group: bytes) -> bytes:
    """An entry of a list that is printed one entry a line, without what belongs to the list."""
    text = group.strip()
    if text in (b"[", b"]"):
        return b"[]"
    text = text.rstrip(b",")
    return text.removesuffix(b"]").rstrip() if text.startswith(b"{") else text


def _loads(data: bytes) -> Any:
    """The value, or None where it is not JSON (a bare `null` holds nothing either)."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None
