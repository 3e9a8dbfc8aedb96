"""The tables of a recording while it is imported: whole batches straight to Parquet, memory bounded.

Each row keeps the number of the source it came from in a column of its own, `source`, which readers of a recording
need not know: by it clocks are set, and people find the file.
"""

from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ragclinic.signals.content import ContentPolicy
from ragclinic.signals.readers.reader import Rows
from ragclinic.signals.records import Chunk, Part, Record, Sample, Span
from ragclinic.signals.requests import parse_attributes
from ragclinic.signals.schema import TABLE_OF, TABLES, to_table

SOURCE = "source"
SEGMENT = "000001.parquet"
GROUP_ROWS = 60_000
GROUP_BYTES = 24 * 1024 * 1024
RECORD_ROWS = 10_000


# The others differ from row to row, and a dictionary of them would only be thrown away.
REPEATING = ("name", "service", "error", "role", "labels", "doc", SOURCE)


def with_source(schema: pa.Schema) -> pa.Schema:
    """A table's schema with the number of the source."""
    return schema.append(pa.field(SOURCE, pa.int32()))


class ImportTables:
    """Takes records and whole tables; one file a table. Writing runs beside reading, one group behind."""

    def __init__(self, folder: Path, policy: ContentPolicy) -> None:
        self._folder, self._policy = folder, policy
        self._records: dict[str, list[Record]] = defaultdict(list)
        self._waiting: dict[str, list[pa.Table]] = defaultdict(list)
        self._writers: dict[str, pq.ParquetWriter] = {}
        self._pool = ThreadPoolExecutor(max_workers=1)
        self._writing: Future[None] | None = None
        self.rows: dict[str, int] = dict.fromkeys(TABLES, 0)

    def add(self, found: Record | Rows, source: int) -> None:
        """Keeps a record or a table, after the content policy."""
        if isinstance(found, Rows):
            if self._policy.content == "text" or found.table == "samples":
                self._add_table(found.table, found.data, source)
                return
            for record in records_of(found):
                self.add(record, source)
            return
        name = TABLE_OF[type(found)]
        self._records[name].append(self._policy.apply(found))
        if len(self._records[name]) >= RECORD_ROWS:
            self._flush_records(name, source)

    def end_source(self, source: int) -> None:
        """Attributes what is in memory to the source that ends."""
        for name in list(self._records):
            self._flush_records(name, source)

    def close(self) -> None:
        """Writes the rest."""
        try:
            for name in list(self._waiting):
                self._write(name)
            self._wait()
        finally:
            self._pool.shutdown()
            for writer in self._writers.values():
                writer.close()

    def _flush_records(self, name: str, source: int) -> None:
        records = self._records.pop(name, [])
        if records:
            self._add_table(name, to_table(name, records), source)

    def _add_table(self, name: str, table: pa.Table, source: int) -> None:
        self.rows[name] += len(table)
        column = pa.repeat(pa.scalar(source, pa.int32()), len(table))
        self._waiting[name].append(table.append_column(pa.field(SOURCE, pa.int32()), column))
        tables = self._waiting[name]
        if sum(map(len, tables)) >= GROUP_ROWS or sum(t.nbytes for t in tables) >= GROUP_BYTES:
            self._write(name)

    def _write(self, name: str) -> None:
        tables = self._waiting.pop(name, [])
        if not tables:
            return
        if name not in self._writers:
            self._writers[name] = _open(self._folder, name)
        self._wait()
        self._writing = self._pool.submit(self._writers[name].write_table, pa.concat_tables(tables))

    def _wait(self) -> None:
        if self._writing is not None:
            self._writing.result()
            self._writing = None


def records_of(rows: Rows) -> Iterator[Record]:
    """The records of a table, one by one."""
    for row in rows.data.to_pylist():
        match rows.table:
            case "spans":
                attributes = parse_attributes(row.pop("attributes"))
                yield Span(**{**row, "service": row["service"] or "", "attributes": attributes})
            case "chunks":
                yield Chunk(**row)
            case "parts":
                yield Part(**row)
            case _:
                yield Sample(row["time_ns"], row["name"], row["value"], parse_attributes(row["labels"]))  # type: ignore[arg-type]


@contextmanager
def rewritten(folder: Path, name: str) -> Iterator[pq.ParquetWriter]:
    """A writer whose file takes the table's place when all went well."""
    path = folder / name / SEGMENT
    temporary = path.with_suffix(".tmp")
    with _writer(temporary, name) as writer:
        yield writer
    temporary.replace(path)


def _open(folder: Path, name: str) -> pq.ParquetWriter:
    (folder / name).mkdir(parents=True, exist_ok=True)
    return _writer(folder / name / SEGMENT, name)


def _writer(path: Path, name: str) -> pq.ParquetWriter:
    schema = with_source(TABLES[name])
    repeating = [column for column in schema.names if column in REPEATING]
    return pq.ParquetWriter(path, schema, compression="zstd", use_dictionary=repeating)
