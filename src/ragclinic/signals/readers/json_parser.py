"""JSON parsed piece by piece, for documents that do not fit into memory: values at wanted paths come out whole."""

from decimal import Decimal
from typing import Any, NamedTuple

import ijson

ELEMENT_BYTES = 32 * 1024 * 1024
"""No span is this large; a single endless string is."""
MAX_DEPTH = 200
_OPENS = frozenset({"start_map", "start_array"})
_CLOSES = frozenset({"end_map", "end_array"})

Found = tuple[str, Any]
"""A path and the value there, None for a mark."""


class Paths(NamedTuple):
    """The paths whose values are wanted, and those whose beginning is."""

    wanted: frozenset[str]
    marks: frozenset[str]


class PieceParser:
    """Takes pieces, gives the values that end in them; after a fault it is spent. Outermost lists are ignored."""

    def __init__(self, paths: Paths) -> None:
        self._events = ijson.sendable_list()
        self._coroutine = ijson.parse_coro(self._events, multiple_values=True)
        self._paths = paths
        self._building: _Building | None = None
        self._depth = 0
        self._outer_lists = 0
        self._pending_bytes = 0
        self.fault: str | None = None
        self.used = False

    def feed(self, piece: bytes) -> list[Found]:
        """What ends in this piece; a fault in it is left in `fault`, and what came before it is still given."""
        try:
            self._coroutine.send(piece)
        except (ijson.JSONError, UnicodeDecodeError) as error:
            self.fault = " ".join(str(error).split())[:80]
        self.used = True
        found: list[Found] = []
        progress = False
        for event in self._events:
            progress = True
            if self._depth > MAX_DEPTH:
                self.fault = f"nested more than {MAX_DEPTH} deep"
                break
            if (value := self._event(*event)) is not None:
                found.append(value)
        del self._events[:]
        self._pending_bytes = (
            0 if found or (progress and self._building is None) else self._pending_bytes + len(piece)
        )
        if self._pending_bytes > ELEMENT_BYTES:
            self.fault = f"a value of more than {ELEMENT_BYTES} bytes"
        return found

    def complete(self) -> bool:
        """Whether the input may end here."""
        try:
            self._coroutine.close()
        except (ijson.JSONError, UnicodeDecodeError):
            return False
        return self._depth == 0

    def _event(self, prefix: str, event: str, value: Any) -> Found | None:
        if event in _CLOSES:
            self._depth -= 1
            self._outer_lists = min(self._outer_lists, self._depth)
        found = self._mark(prefix, event) if self._building is None else None
        if event in _OPENS:
            self._depth += 1
        if self._building is None:
            return found
        built = self._building
        # Exact integers of any size come as int, all else as Decimal (asking for floats would lose integers).
        built.builder.event(event, float(value) if isinstance(value, Decimal) else value)
        if self._depth > built.floor:
            return None
        self._building = None
        return built.path, built.builder.value

    def _mark(self, prefix: str, event: str) -> Found | None:
        """Begins a wanted value, steps into an outermost list, or gives a mark."""
        if event == "map_key" or event in _CLOSES:
            return None
        path = prefix
        for _ in range(self._outer_lists):
            path = path.removeprefix("item").removeprefix(".")
        if event == "start_array" and self._depth == self._outer_lists:
            self._outer_lists += 1
        elif path in self._paths.wanted:
            self._building = _Building(ijson.ObjectBuilder(), path, self._depth)
        elif event == "start_map" and path in self._paths.marks:
            return path, None
        return None


class _Building(NamedTuple):
    builder: Any
    path: str
    floor: int
