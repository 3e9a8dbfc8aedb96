"""A recording on disk: a folder of Parquet segments, one sub-folder a table, read through DuckDB.

Segments are written whole and moved into place, at least once a second, so that a killed process loses at most
the last second and what was written still opens. `close` joins the small segments of each table into one.
"""

import json
import threading
import time
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from ragclinic.errors import BadInput
from ragclinic.signals.content import ContentPolicy
from ragclinic.signals.records import Record
from ragclinic.signals.schema import TABLE_OF, TABLES, VERSION, to_table

META = "recording.json"
FLUSH_S = 0.9
"""Just under the second that may be lost, so that a slow write still keeps the promise."""
FLUSH_ROWS = 50_000


class RecordingWriter:
    """Writes records into a new folder; safe to call from several threads; use it as a context manager."""

    def __init__(
        self, folder: Path, meta: Mapping[str, object], policy: ContentPolicy, flush_s: float = FLUSH_S
    ) -> None:
        if (folder / META).exists():
            raise BadInput(
                f"{folder}: holds a recording already; expected a new folder; choose another or remove it"
            )
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.policy = policy
        self._meta: dict[str, object] = {
            "schema_version": VERSION,
            "content": policy.content,
            "started_ns": time.time_ns(),
            **meta,
        }
        self._rows: dict[str, list[Record]] = defaultdict(list)
        self._segments = 0
        self._lock = threading.Lock()
        self._write_lock = threading.Lock()
        self._stop = threading.Event()
        self.describe({})
        self._thread = threading.Thread(target=self._flush_regularly, args=(flush_s,), daemon=True)
        self._thread.start()

    def describe(self, meta: Mapping[str, object]) -> None:
        """Adds to the recording's description; what was there stays."""
        self._meta.update(meta)
        _write_atomically(
            self.folder / META, json.dumps(self._meta, ensure_ascii=False, indent=1, default=str).encode()
        )

    def add(self, *records: Record) -> None:
        """Keeps the records, after the content policy; they reach the disk within a second."""
        with self._lock:
            for record in records:
                self._rows[TABLE_OF[type(record)]].append(self.policy.apply(record))
            full = any(len(rows) >= FLUSH_ROWS for rows in self._rows.values())
        if full:
            self.flush()

    def flush(self) -> None:
        """Writes what is in memory to new segments."""
        with self._write_lock:
            with self._lock:
                rows, self._rows = self._rows, defaultdict(list)
            for name, records in sorted(rows.items()):
                self._segments += 1
                _write_segment(self.folder / name / f"{self._segments:06d}.parquet", to_table(name, records))

    def close(self) -> None:
        """Writes the rest and joins the segments."""
        self._stop.set()
        self._thread.join()
        self.flush()
        for name in TABLES:
            _join_segments(self.folder, name)
        self.describe({"ended_ns": time.time_ns()})

    def _flush_regularly(self, flush_s: float) -> None:
        while not self._stop.wait(flush_s):
            self.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Recording:
    """A recording opened for reading."""

    def __init__(self, folder: Path, meta: Mapping[str, Any]) -> None:
        self.folder = folder
        self.meta = meta

    def table(self, name: str) -> pa.Table:
        """All rows of one table, an empty table where nothing of the kind was recorded.

        Raises:
            BadInput: a segment cannot be read; the message names the file.
        """
        tables = [_read_segment(path, TABLES[name]) for path in segments(self.folder, name)]
        return pa.concat_tables(tables) if tables else TABLES[name].empty_table()

    def sql(self, query: str) -> pa.Table:
        """The answer to a query over `spans`, `samples`, `chunks` and `parts`, as an Arrow table."""
        import duckdb  # heavy, and only reading needs it

        with duckdb.connect() as connection:
            for name in TABLES:
                connection.register(name, self.table(name))
            try:
                return connection.sql(query).to_arrow_table()
            except duckdb.Error as error:
                first = str(error).splitlines()[0]
                raise BadInput(f"SQL: {first}; expected a query over {', '.join(TABLES)}; mend it") from error


def is_recording(folder: Path) -> bool:
    """Whether the folder holds a recording."""
    return (folder / META).is_file()


def open_recording(folder: Path) -> Recording:
    """Opens a recording.

    Raises:
        BadInput: there is none, or it was written by a newer schema.
    """
    path = folder / META
    try:
        meta = json.loads(path.read_text("utf-8"))
    except FileNotFoundError as error:
        raise BadInput(
            f"{folder}: no {META} there; expected a folder that ragclinic recorded; check the path"
        ) from error
    except (OSError, ValueError) as error:
        raise BadInput(f"{path}: cannot be read ({error}); expected JSON; restore the file") from error
    version = meta.get("schema_version") if isinstance(meta, dict) else None
    if not isinstance(version, int) or version > VERSION:
        raise BadInput(f"{path}: schema {version}; expected at most {VERSION}; use a newer ragclinic")
    return Recording(folder, meta)


def segments(folder: Path, name: str) -> list[Path]:
    """The segment files of one table, oldest first, without those that a joined one holds already."""
    found = sorted((folder / name).glob("*.parquet"), key=_range)
    joined = [_range(path) for path in found if "-" in path.stem]
    return [
        path
        for path in found
        if "-" in path.stem or not any(first <= _range(path)[0] <= last for first, last in joined)
    ]


def _read_segment(path: Path, schema: pa.Schema) -> pa.Table:
    try:
        return pq.read_table(path, schema=schema)
    except (pa.ArrowException, OSError, ValueError) as error:
        first = str(error).splitlines()[0]
        raise BadInput(
            f"{path}: damaged segment ({first}); expected Parquet of {schema.names[0]}, ...; "
            "remove the file to read the rest"
        ) from error


def _write_segment(path: Path, table: pa.Table) -> None:
    path.parent.mkdir(exist_ok=True)
    temporary = path.with_suffix(".tmp")
    pq.write_table(table, temporary, compression="zstd")
    temporary.replace(path)


def _write_atomically(path: Path, data: bytes) -> None:
    temporary = path.with_suffix(".tmp")
    temporary.write_bytes(data)
    temporary.replace(path)


def _join_segments(folder: Path, name: str) -> None:
    """Joins the small segments of a table into one named by the range it holds, `000001-000045.parquet`.

    From the moment that file is there, readers pass over the segments inside its range: a crash before they
    are deleted counts no row twice, and a crash before it loses none.
    """
    old = segments(folder, name)
    if len(old) < 2:
        return
    first, last = _range(old[0])[0], max(_range(path)[1] for path in old)
    temporary = folder / name / "joined.tmp"
    with pq.ParquetWriter(temporary, TABLES[name], compression="zstd") as writer:
        for path in old:
            writer.write_table(pq.read_table(path, schema=TABLES[name]))
    temporary.replace(folder / name / f"{first:06d}-{last:06d}.parquet")
    for path in old:
        path.unlink()


def _range(path: Path) -> tuple[int, int]:
    first, _, last = path.stem.partition("-")
    return int(first), int(last or first)
