"""After reading: duplicates removed, clocks aligned, the client's and the server's span of a request joined.

All of it is SQL (`signals/sql/`) over the files just written, so that memory stays bounded; a file is written anew
only where something in it changes.
"""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

import pyarrow as pa

from ragclinic.signals.import_clocks import Clock, Link, Offset, offsets
from ragclinic.signals.import_tables import SEGMENT, rewritten, with_source
from ragclinic.signals.readers.reader import Bad, Origin
from ragclinic.signals.schema import TABLES

DUPLICATE = "duplicate span id"
MEMORY_LIMIT = "256MB"
BATCH_ROWS = 50_000


@dataclass(frozen=True, slots=True)
class Finished:
    """What was found once everything was read. `clocks` are the clocks that were moved, and by how much."""

    rows: Mapping[str, int]
    duplicates: int = 0
    first_duplicate: tuple[int, str] | None = None
    orphans: int = 0
    joined: int = 0
    clocks: Mapping[Clock, Offset] = field(default_factory=dict)

    def duplicate_rows(self, paths: tuple[str, ...]) -> Bad:
        """The duplicates as unreadable rows."""
        source, span_id = self.first_duplicate or (0, "")
        return Bad(
            DUPLICATE, self.duplicates, Origin(paths[source]), f"span {span_id} was there already; kept once"
        )


def finish(folder: Path, rows: Mapping[str, int], by_hand_ns: Mapping[int, int]) -> Finished:
    """Puts the tables in `folder` in order, says what was done. `by_hand_ns` are offsets by number of source."""
    import duckdb

    if not any(rows.values()):
        return Finished(dict(rows))
    spill = folder / ".spill"
    config: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": MEMORY_LIMIT,
        "temp_directory": str(spill),
        "preserve_insertion_order": False,
    }
    try:
        with duckdb.connect(config=config) as connection:
            finishing = _Finishing(connection, folder, dict(rows))
            finishing.samples(by_hand_ns)
            return finishing.spans(by_hand_ns) if rows.get("spans") else Finished(finishing.rows)
    finally:
        shutil.rmtree(spill, ignore_errors=True)


class _Finishing:
    def __init__(self, connection: Any, folder: Path, rows: dict[str, int]) -> None:
        self._connection, self._folder, self.rows = connection, folder, rows
        self._run("macros")
        for name in TABLES:
            if rows.get(name):
                self._view(name)

    def samples(self, by_hand_ns: Mapping[int, int]) -> None:
        if self.rows.get("samples") and by_hand_ns:
            self._set_offsets({(source, ""): Offset(add_ns) for source, add_ns in by_hand_ns.items()})
            self._rewrite("samples", "samples_moved")

    def spans(self, by_hand_ns: Mapping[int, int]) -> Finished:
        duplicates, first = self._drop_duplicates()
        roots: dict[Clock, int] = {(source, service): n for source, service, n in self._run("clocks").fetchall()}
        self._run("servers")
        links = [_link(row) for row in self._run("links").fetchall()] if len(roots) > 1 else []
        fixed = {clock: by_hand_ns[clock[0]] for clock in roots if clock[0] in by_hand_ns}
        clocks = offsets(links, roots, fixed)
        self._set_offsets(clocks)
        joined = self._join()
        if clocks or joined:
            self._rewrite("spans", "spans_moved")
        return Finished(self.rows, duplicates, first, self._number("orphans"), joined, clocks)

    def _drop_duplicates(self) -> tuple[int, tuple[int, str] | None]:
        count = self._number("duplicates")
        if not count:
            return 0, None
        first = self._run("first_duplicate").fetchall()[0]
        for name in ("spans", "chunks", "parts"):
            if self.rows.get(name):
                self._rewrite(name, f"{name}_once")
        return count, (int(first[0]), str(first[1]))

    def _join(self) -> int:
        self._run("join")
        joined = int(self._connection.execute("SELECT count(*) FROM moves").fetchall()[0][0])
        for name in ("chunks", "parts"):
            if joined and self.rows.get(name):
                self._rewrite(name, f"{name}_moved")
        return joined

    def _set_offsets(self, clocks: Mapping[Clock, Offset]) -> None:
        self._connection.execute("DELETE FROM offsets")
        if clocks:
            values = [[*clock, offset.add_ns] for clock, offset in clocks.items()]
            self._connection.executemany("INSERT INTO offsets VALUES (?, ?, ?)", values)

    def _run(self, name: str) -> Any:
        return self._connection.execute(
            files("ragclinic.signals").joinpath("sql", f"{name}.sql").read_text("utf-8")
        )

    def _number(self, name: str) -> int:
        return int(self._run(name).fetchall()[0][0])

    def _view(self, name: str) -> None:
        path = self._folder / name / SEGMENT
        self._connection.read_parquet(str(path)).create_view(name, replace=True)

    def _rewrite(self, name: str, query: str) -> None:
        schema = with_source(TABLES[name])
        rows = 0
        with rewritten(self._folder, name) as writer:
            for batch in self._connection.sql(_text(query)).to_arrow_reader(BATCH_ROWS):
                rows += len(batch)
                writer.write_table(pa.Table.from_batches([batch]).select(schema.names).cast(schema))
        self.rows[name] = rows
        self._view(name)


def _text(query: str) -> str:
    return files("ragclinic.signals").joinpath("sql", f"{query}.sql").read_text("utf-8")


def _link(row: tuple[Any, ...]) -> Link:
    outer_source, outer_service, inner_source, inner_service, pairs, outside_share, middle_ns, half_ns = row
    return Link(
        (outer_source, outer_service),
        (inner_source, inner_service),
        pairs,
        outside_share,
        round(middle_ns),
        round(half_ns),
    )
