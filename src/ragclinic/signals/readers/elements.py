"""Elements of JSON of any size: one document, one object a line, or documents one after another; memory bounded.

A reader asks for elements by dotted paths (`resourceSpans.item.resource`; `item` is a list's entry, an empty path
the outermost object) and gets them in the order in which they stand. An outermost list is looked through. A broken
or endless line is counted once and the rest is read.
"""

import json
from collections.abc import Collection, Iterator
from itertools import chain
from typing import Any, BinaryIO, NamedTuple

import ijson

from ragclinic.signals.readers.reader import Origin, ReadLog
from ragclinic.signals.readers.streams import stream_of

WHOLE_BYTES = 4 * 1024 * 1024
"""What is read at once: a document or a line up to this size. Larger ones are parsed piece by piece."""
ELEMENT_BYTES = 32 * 1024 * 1024
"""No span is this large; a single endless string is."""
PIECE_BYTES = 64 * 1024
MAX_DEPTH = 200
BAD_JSON = "unreadable JSON"


class Element(NamedTuple):
    """A value and its path; `line` counts lines, or elements where the input is one document."""

    path: str
    value: Any
    line: int


def elements(stream: BinaryIO, origin: Origin, log: ReadLog, paths: Collection[str]) -> Iterator[Element]:
    """The elements at these paths; what cannot be parsed is counted in `log`."""
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


def _small(data: bytes, origin: Origin, log: ReadLog, paths: Collection[str]) -> Iterator[Element]:
    whole = _loads(data)
    if whole is not None:
        for number, (path, value) in enumerate(_walk(whole, "", paths), start=1):
            yield Element(path, value, number)
        return
    for line, group in _groups(data.splitlines(keepends=True)):
        value = _loads(_bare(group))
        if value is None:
            _reject(log, origin.at(line), group)
        else:
            yield from (Element(path, found, line) for path, found in _walk(value, "", paths))


def _lines(stream: BinaryIO, origin: Origin, log: ReadLog, paths: Collection[str]) -> Iterator[Element]:
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
            _reject(log, origin.at(number), raw)
        else:
            yield from (Element(path, found, number) for path, found in _walk(value, "", paths))


def _to_line_end(stream: BinaryIO) -> Iterator[bytes]:
    while raw := stream.readline(PIECE_BYTES):
        yield raw
        if raw.endswith(b"\n"):
            return


class _Pieces:
    """Parses a stream piece by piece, and starts anew at the next line that opens an object after a fault."""

    def __init__(self, stream: BinaryIO, origin: Origin, log: ReadLog, paths: Collection[str]) -> None:
        self._stream, self._origin, self._log, self._paths = stream, origin, log, paths

    def elements(self, line: int, one_line: bool = False) -> Iterator[Element]:
        """The elements, the first line being number `line`."""
        parser: _Parser | None = _Parser(self._paths)
        at_start = True
        while piece := self._stream.readline(PIECE_BYTES):
            opens = at_start and piece[:1] in (b"{", b"[")
            if parser is None and opens:
                parser = _Parser(self._paths)
            if parser is not None:
                try:
                    found = parser.feed(piece)
                except ValueError as error:
                    self._log.reject(BAD_JSON, self._origin.at(line), f"{error}; expected JSON")
                    parser, found = self._again(piece) if opens and parser.fed else (None, [])
                yield from (Element(path, value, line) for path, value in found)
            at_start = piece.endswith(b"\n")
            line += at_start and not one_line
        if parser is not None and not parser.complete():
            self._log.reject(
                BAD_JSON, self._origin.at(line), "the input ends inside a value; expected the whole file"
            )

    def _again(self, piece: bytes) -> tuple["_Parser | None", list[tuple[str, Any]]]:
        """A fault in a line that opens an object may be the line before it, cut off: try it on its own."""
        parser = _Parser(self._paths)
        try:
            return parser, parser.feed(piece)
        except ValueError:
            return None, []


class _Parser:
    """Builds the elements at the wanted paths from pieces of JSON; raises ValueError on a fault or a giant."""

    def __init__(self, paths: Collection[str]) -> None:
        self._events = ijson.sendable_list()
        self._coroutine = ijson.parse_coro(self._events, multiple_values=True, use_float=True)
        self._paths = paths
        self._builder: Any = None
        self._path = ""
        self._depth = 0
        self._outer_lists = 0
        self._since_element = 0
        self.fed = False

    def feed(self, piece: bytes) -> list[tuple[str, Any]]:
        """The elements that end in this piece."""
        try:
            self._coroutine.send(piece)
        except (ijson.JSONError, UnicodeDecodeError) as error:
            raise ValueError(" ".join(str(error).split())[:80]) from error
        self.fed = True
        self._since_element += len(piece)
        found = [element for event in self._events if (element := self._event(*event)) is not None]
        if found or (self._events and self._builder is None):
            self._since_element = 0
        del self._events[:]
        if self._since_element > ELEMENT_BYTES:
            raise ValueError(f"a value of more than {ELEMENT_BYTES} bytes")
        return found

    def complete(self) -> bool:
        """Whether the input may end here."""
        try:
            self._coroutine.close()
        except (ijson.JSONError, UnicodeDecodeError):
            return False
        return self._depth == 0

    def _event(self, prefix: str, event: str, value: Any) -> tuple[str, Any] | None:
        opens, closes = event in ("start_map", "start_array"), event in ("end_map", "end_array")
        if closes:
            self._depth -= 1
        if self._builder is None and event != "map_key" and not closes:
            path = _inside_outer_lists(prefix, self._outer_lists)
            if path in self._paths and not (event == "start_array" and path == ""):
                self._builder, self._path, self._floor = ijson.ObjectBuilder(), path, self._depth
            elif event == "start_array" and self._depth == self._outer_lists:
                self._outer_lists += 1
        if opens:
            self._depth += 1
            if self._depth > MAX_DEPTH:
                raise ValueError(f"nested more than {MAX_DEPTH} deep")
        elif closes and self._depth < self._outer_lists:
            self._outer_lists = self._depth
        if self._builder is None:
            return None
        self._builder.event(event, value)
        if self._depth > self._floor:
            return None
        built, self._builder = self._builder.value, None
        return self._path, built


def _inside_outer_lists(prefix: str, lists: int) -> str:
    for _ in range(lists):
        prefix = prefix.removeprefix("item").removeprefix(".")
    return prefix


def _walk(value: Any, path: str, paths: Collection[str]) -> Iterator[tuple[str, Any]]:
    if isinstance(value, list) and path == "":
        for entry in value:
            yield from _walk(entry, path, paths)
    elif path in paths:
        yield path, value
    elif isinstance(value, dict):
        for key, entry in value.items():
            yield from _walk(entry, f"{path}.{key}" if path else key, paths)
    elif isinstance(value, list):
        for entry in value:
            yield from _walk(entry, f"{path}.item", paths)


def _groups(lines: list[bytes]) -> Iterator[tuple[int, bytes]]:
    """Runs of lines, each from a line that opens an object or list to the next such line; empty runs left out."""
    first, run = 1, b""
    for number, line in enumerate(lines, start=1):
        if line[:1] in (b"{", b"[") and run:
            if run.strip():
                yield first, run
            first, run = number, b""
        run += line
    if run.strip():
        yield first, run


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


def _reject(log: ReadLog, where: Origin, data: bytes) -> None:
    """Counts what `_loads` refused, with the reason."""
    try:
        json.loads(data)
        reason = "a bare null"
    except RecursionError:
        reason = "nested too deeply"
    except UnicodeDecodeError as error:
        reason = f"byte 0x{data[error.start]:02x} is not UTF-8"
    except ValueError as error:
        reason = str(error)
    log.reject(BAD_JSON, where, f"{reason}; expected JSON")
