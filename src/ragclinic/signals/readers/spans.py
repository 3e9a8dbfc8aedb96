"""Spans of any tracing system as columns: what every trace reader fills and `interpret` gives a meaning."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ragclinic.signals.readers.encode import Triples

BATCH_ROWS = 5_000
BATCH_BYTES = 8 * 1024 * 1024
MAX_NS = 2**63 - 1


class Event(NamedTuple):
    """Something that happened within a span: its row, name, time and attributes."""

    row: int
    name: str
    time_ns: int
    attributes: Mapping[str, Any]


class SpanColumns(NamedTuple):
    """A batch of spans as columns, unchecked. `line` says where in the source each one stood."""

    trace_id: pa.Array
    span_id: pa.Array
    parent_id: pa.Array
    name: pa.Array
    start_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]
    service: pa.Array
    error: pa.Array
    line: NDArray[np.int64]
    attributes: Triples
    events: tuple[Event, ...] = ()

    def __len__(self) -> int:
        return len(self.start_ns)


@dataclass(slots=True)
class SpanRow:
    """One span as a reader of rows found it. Values of attributes may be anything JSON can hold."""

    trace_id: str
    span_id: str
    name: str
    start_ns: int
    end_ns: int
    parent_id: str | None = None
    service: str = ""
    error: str | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)
    events: tuple[tuple[str, int, Mapping[str, Any]], ...] = ()
    line: int = 0


class SpanBuilder:
    """Collects rows until a batch is full."""

    def __init__(self) -> None:
        self._rows: list[SpanRow] = []
        self._triples = TripleBuilder()

    def add(self, row: SpanRow) -> None:
        """Adds a span; times that no 64-bit integer holds become 0, which `interpret` counts as bad."""
        row.start_ns = row.start_ns if 0 <= row.start_ns <= MAX_NS else 0
        row.end_ns = row.end_ns if 0 <= row.end_ns <= MAX_NS else 0
        for name, value in row.attributes.items():
            self._triples.add(len(self._rows), name, value)
        self._rows.append(row)

    @property
    def full(self) -> bool:
        """Whether it is time to `take`."""
        return len(self._rows) >= BATCH_ROWS or self._triples.size_bytes >= BATCH_BYTES

    def take(self) -> SpanColumns:
        """What was collected, and starts anew."""
        rows, triples = self._rows, self._triples.build()
        self._rows, self._triples = [], TripleBuilder()
        return SpanColumns(
            trace_id=_texts([r.trace_id for r in rows]),
            span_id=_texts([r.span_id for r in rows]),
            parent_id=_texts([r.parent_id or None for r in rows]),
            name=_texts([r.name for r in rows]),
            start_ns=np.array([r.start_ns for r in rows], dtype=np.int64),
            end_ns=np.array([r.end_ns for r in rows], dtype=np.int64),
            service=_texts([r.service for r in rows]),
            error=_texts([r.error for r in rows]),
            line=np.array([r.line for r in rows], dtype=np.int64),
            attributes=triples,
            events=tuple(Event(i, *event) for i, r in enumerate(rows) for event in r.events),
        )

    def __len__(self) -> int:
        return len(self._rows)


class TripleBuilder:
    """Collects attributes one at a time."""

    def __init__(self) -> None:
        self.size_bytes = 0
        self._owner: list[int] = []
        self._key: list[int] = []
        self._names: dict[str, int] = {}
        self._text: list[str] = []
        self._quoted: list[bool] = []

    def add(self, row: int, name: str, value: Any) -> None:
        """Adds a value; None is left out, lists and objects become JSON text, as does what JSON cannot write."""
        if value is None:
            return
        if isinstance(value, str):
            text, quoted = value, True
        elif isinstance(value, float) and not math.isfinite(value):
            text, quoted = str(value), True
        elif isinstance(value, bool | int | float):
            text, quoted = json.dumps(value), False
        else:
            text, quoted = json.dumps(value, ensure_ascii=False, default=str), True
        self._owner.append(row)
        self._key.append(self._names.setdefault(name, len(self._names)))
        self._text.append(text)
        self._quoted.append(quoted)
        self.size_bytes += len(text) + 16

    def build(self) -> Triples:
        """What was added, as columns."""
        return Triples(
            np.array(self._owner, dtype=np.int64),
            np.array(self._key, dtype=np.int32),
            [clean(name) for name in self._names],
            _texts(self._text),
            np.array(self._quoted, dtype=np.bool_),
        )


def clean(text: str) -> str:
    """The text with half surrogate pairs, which JSON can hold and UTF-8 cannot, replaced."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _texts(values: list[Any]) -> pa.Array:
    try:
        return pa.array(values, pa.string())
    except UnicodeEncodeError:
        return pa.array([None if v is None else clean(v) for v in values], pa.string())
