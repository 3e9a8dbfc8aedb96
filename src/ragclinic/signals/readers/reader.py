"""What a reader is: one public format, recognised by content, turned into records lazily.

A reader sees a stream of plain bytes; opening, decompressing and recognising are done before it, in
`signals.source`. The books must balance: every row a reader meets is kept (`ReadLog.keep`), counted as bad with
its place (`ReadLog.reject`), or passed over because it is sound and holds nothing for us (`ReadLog.skip`).
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import BinaryIO, NamedTuple

import pyarrow as pa

from ragclinic.signals.records import Record

HEAD_BYTES = 64 * 1024
"""How much of a stream `Reader.sniff` sees."""
EXAMPLE_CHARACTERS = 160


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a row stands. `modified_ns` is when the file was last written, for logs that print no date."""

    path: str
    line: int | None = None
    modified_ns: int | None = None

    def at(self, line: int) -> "Origin":
        """The same file at a line (or a record, where the format has no lines), counted from 1."""
        return replace(self, line=line)

    def __str__(self) -> str:
        return self.path if self.line is None else f"{self.path}:{self.line}"


class Rows(NamedTuple):
    """Many records of one kind at once: an Arrow table with the schema of `signals.schema.TABLES[table]`."""

    table: str
    data: pa.Table


@dataclass(frozen=True, slots=True)
class Bad:
    """Rows of one kind that could not be read: how many, where the first one is, and what was found there."""

    kind: str
    count: int
    first: Origin
    found: str


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What the user may say about the input.

    `tenant` names the attribute or field that holds the tenant, `fields` maps the fields of JSON-lines logs to
    ours. `lookups` is what one file of a set defines for the others (RAGPulse: token lengths by hash id).
    """

    tenant: str | None = None
    fields: Mapping[str, str] = field(default_factory=dict)
    lookups: dict[str, dict[int, int]] = field(default_factory=dict)


class ReadLog:
    """The account of one source: rows kept, bad and passed over, and the signals its input lacks."""

    def __init__(self) -> None:
        self.kept = 0
        self.skipped = 0
        self.notes: list[str] = []
        self._bad: dict[str, Bad] = {}
        self._missing: dict[str, str] = {}

    def keep(self, rows: int = 1) -> None:
        """Counts rows of the input (spans, samples, log lines) that became records."""
        self.kept += rows

    def skip(self, rows: int = 1) -> None:
        """Counts rows that are sound and hold nothing for a recording: comments, lines of other programs."""
        self.skipped += rows

    def reject(self, kind: str, where: Origin, found: str, rows: int = 1) -> None:
        """Counts unreadable rows. `kind` is a few plain words; `found` says what stood there and what should."""
        old = self._bad.get(kind)
        if old is None:
            self._bad[kind] = Bad(kind, rows, where, _shorten(found))
        else:
            self._bad[kind] = replace(old, count=old.count + rows)

    def lacks(self, signal: str, how: str) -> None:
        """Says that the input has no such signal, and the one line that turns it on."""
        self._missing.setdefault(signal, how)

    def note(self, text: str) -> None:
        """Keeps a sentence the user should see, once."""
        if text not in self.notes:
            self.notes.append(text)

    @property
    def bad(self) -> tuple[Bad, ...]:
        """The unreadable rows by kind, most frequent first."""
        return tuple(sorted(self._bad.values(), key=lambda b: (-b.count, b.kind)))

    @property
    def bad_rows(self) -> int:
        """All rows that were counted as bad."""
        return sum(b.count for b in self._bad.values())

    @property
    def rows(self) -> int:
        """All rows of the input: kept, bad, passed over."""
        return self.kept + self.bad_rows + self.skipped

    @property
    def missing(self) -> Mapping[str, str]:
        """Signals the input lacks, each with the line that turns it on."""
        return dict(self._missing)


Sniff = Callable[[bytes], float]
Read = Callable[[BinaryIO, Origin, ReadLog, ReadOptions], Iterator[Record | Rows]]


@dataclass(frozen=True, slots=True)
class Reader:
    """One format. See docs/adding/reader.md.

    `versions` are the program versions whose source or documents were read, for people; `signals` is what the
    format can carry. `sniff(head)` says from 0 to 1 how sure the first `HEAD_BYTES` are of this format: cheap,
    never raises. `first` readers of a set run before the others, since those look their ids up.
    """

    id: str
    versions: tuple[str, ...]
    signals: tuple[str, ...]
    sniff: Sniff
    read: Read
    first: bool = False


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= EXAMPLE_CHARACTERS else line[: EXAMPLE_CHARACTERS - 1] + "…"
