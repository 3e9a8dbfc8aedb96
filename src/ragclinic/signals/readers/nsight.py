"""The SQLite export of Nsight Systems (`nsys export --type sqlite`): ranges, kernels, copies, device memory.

Names from the schema reference of Nsight Systems 2021.5 and queries in use since. Tables are made only where
there is something to put in; times are nanoseconds since the session began, whose own time stands in
TARGET_INFO_SESSION_START_TIME. A kernel or a copy is laid under the innermost NVTX range that was open on the
thread that launched it (tenant or stage ranges), so that it can be told whose it was. All spans are of kind
`profile`: they are no requests.

SQLite needs a file, so the stream is copied to a temporary one. Only plain tables are read, never views.
"""

import shutil
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from tempfile import NamedTemporaryFile
from typing import Any, BinaryIO

from ragclinic.signals.readers.reader import Origin, Reader, ReadLog, ReadOptions
from ragclinic.signals.records import AttributeValue, Record, Sample, Span
from ragclinic.signals.requests import KIND

MAGIC = b"SQLite format 3\x00"
RANGES, KERNELS, COPIES, LAUNCHES = (
    "NVTX_EVENTS",
    "CUPTI_ACTIVITY_KIND_KERNEL",
    "CUPTI_ACTIVITY_KIND_MEMCPY",
    "CUPTI_ACTIVITY_KIND_RUNTIME",
)
MEMORY, STRINGS, SESSION = "CUDA_GPU_MEMORY_USAGE_EVENTS", "StringIds", "TARGET_INFO_SESSION_START_TIME"
NEEDED: Mapping[str, frozenset[str]] = {
    RANGES: frozenset({"start", "end", "text", "globalTid", "eventType"}),
    KERNELS: frozenset({"start", "end", "deviceId", "correlationId", "shortName"}),
    COPIES: frozenset({"start", "end", "bytes", "copyKind", "correlationId"}),
    LAUNCHES: frozenset({"start", "globalTid", "correlationId"}),
    MEMORY: frozenset({"start", "deviceId", "bytes", "memoryOperationType"}),
    STRINGS: frozenset({"id", "value"}),
    SESSION: frozenset({"utcEpochNs"}),
}
PUSH_POP, START_END = 59, 60
COPY_KINDS = {1: "host_to_device", 2: "device_to_host", 8: "device_to_device", 10: "peer_to_peer"}
RANGES_BY_ID = """
    INSERT INTO named SELECT rowid, globalTid, start, end,
        COALESCE(text, (SELECT value FROM StringIds WHERE StringIds.id = textId))
    FROM NVTX_EVENTS WHERE eventType IN (?, ?)"""
RANGES_BY_TEXT = """
    INSERT INTO named SELECT rowid, globalTid, start, end, text FROM NVTX_EVENTS WHERE eventType IN (?, ?)"""
LAUNCHES_IN_RANGES = """
    INSERT OR IGNORE INTO launch SELECT correlationId, globalTid,
        (SELECT id FROM named AS n WHERE n.tid = r.globalTid AND n.start <= r.start AND n.end >= r.start
         ORDER BY n.start DESC LIMIT 1)
    FROM CUPTI_ACTIVITY_KIND_RUNTIME AS r WHERE correlationId IS NOT NULL"""
KERNELS_QUERY = """
    SELECT w.rowid, w.start, w.end, (SELECT value FROM StringIds WHERE StringIds.id = w.shortName),
        w.deviceId, NULL, NULL, l.tid, l.range_id
    FROM CUPTI_ACTIVITY_KIND_KERNEL AS w LEFT JOIN launch AS l ON l.correlation = w.correlationId"""
KERNELS_WITHOUT_NAMES = """
    SELECT w.rowid, w.start, w.end, NULL, w.deviceId, NULL, NULL, l.tid, l.range_id
    FROM CUPTI_ACTIVITY_KIND_KERNEL AS w LEFT JOIN launch AS l ON l.correlation = w.correlationId"""
COPIES_QUERY = """
    SELECT w.rowid, w.start, w.end, NULL, NULL, w.bytes, w.copyKind, l.tid, l.range_id
    FROM CUPTI_ACTIVITY_KIND_MEMCPY AS w LEFT JOIN launch AS l ON l.correlation = w.correlationId"""
MEMORY_QUERY = """
    SELECT rowid, start, deviceId, bytes, memoryOperationType FROM CUDA_GPU_MEMORY_USAGE_EVENTS ORDER BY start"""
LACKING = {
    RANGES: ("nvtx ranges", "nsys profile --trace=cuda,nvtx, and torch.cuda.nvtx.range in the program"),
    KERNELS: ("kernels", "nsys profile --trace=cuda"),
    MEMORY: ("device memory", "nsys profile --cuda-memory-usage=true"),
}


def sniff(head: bytes) -> float:
    """Sure of an SQLite file that names Nsight's tables."""
    if not head.startswith(MAGIC):
        return 0.0
    return 0.95 if any(name.encode() in head for name in (RANGES, KERNELS, MEMORY, SESSION)) else 0.3


def read(stream: BinaryIO, origin: Origin, log: ReadLog, _options: ReadOptions) -> Iterator[Record]:
    """A span for each range, kernel and copy, a sample for each change of device memory; a row is any of them."""
    with NamedTemporaryFile(suffix=".sqlite") as file:
        shutil.copyfileobj(stream, file)
        file.flush()
        try:
            with closing(sqlite3.connect(f"file:{file.name}?mode=ro&immutable=1", uri=True)) as connection:
                yield from _Export(connection, origin, log).records()
        except (sqlite3.Error, OverflowError) as error:
            log.reject("damaged SQLite", origin, f"{error}; expected the file as nsys exported it")


class _Export:
    """One opened export."""

    def __init__(self, connection: sqlite3.Connection, origin: Origin, log: ReadLog) -> None:
        self._db, self._origin, self._log = connection, origin, log
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
        self._tables = self._usable_tables()
        self._zero_ns = self._session_start()

    def records(self) -> Iterator[Record]:
        for table, (signal, how) in LACKING.items():
            if table not in self._tables:
                self._log.lacks(signal, how)
        self._prepare_ranges()
        yield from self._ranges()
        yield from self._work(KERNELS)
        yield from self._work(COPIES)
        yield from self._memory()

    def _usable_tables(self) -> set[str]:
        found = {
            name
            for name, sql in self._db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'")
            if isinstance(name, str) and "VIRTUAL" not in str(sql).upper()[:20]
        }
        usable = set()
        for table, needed in NEEDED.items():
            if table not in found:
                continue
            columns = {row[1] for row in self._db.execute(f"PRAGMA table_info({table})")}
            if needed <= columns:
                usable.add(table)
            else:
                missing = ", ".join(sorted(needed - columns))
                self._log.reject(
                    "unknown schema", self._origin, f"{table} lacks {missing}; expected those columns"
                )
        return usable

    def _session_start(self) -> int:
        if SESSION in self._tables:
            for (value,) in self._db.execute("SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME LIMIT 1"):
                if _sound(value, value):
                    return int(value)
        self._log.note("the export names no session start: its times begin where the file was written")
        return self._origin.modified_ns or 0

    def _prepare_ranges(self) -> None:
        """A temporary table of the ranges with their names, indexed by thread and start."""
        self._db.execute("CREATE TEMP TABLE named (id INTEGER PRIMARY KEY, tid, start, end, name)")
        if RANGES in self._tables:
            named = STRINGS in self._tables and "textId" in self._columns(RANGES)
            self._db.execute(RANGES_BY_ID if named else RANGES_BY_TEXT, (PUSH_POP, START_END))
        self._db.execute("CREATE INDEX temp.by_thread ON named (tid, start)")
        self._db.execute("CREATE TEMP TABLE launch (correlation PRIMARY KEY, tid, range_id) WITHOUT ROWID")
        if LAUNCHES in self._tables:
            self._db.execute(LAUNCHES_IN_RANGES)

    def _columns(self, table: str) -> set[str]:
        return {row[1] for row in self._db.execute(f"PRAGMA table_info({table})")}

    def _ranges(self) -> Iterator[Span]:
        open_: list[tuple[int, int]] = []  # ranges that hold the next one, as (id, end)
        thread: Any = None
        for id_, tid, start, end, name in self._db.execute(
            "SELECT id, tid, start, end, name FROM named ORDER BY tid, start, end DESC"
        ):
            if not _sound(start, end) or not isinstance(tid, int):
                self._bad("range without an end" if end is None else "negative duration", RANGES, id_)
                continue
            if tid != thread:
                thread, open_ = tid, []
            while open_ and open_[-1][1] < end:
                open_.pop()
            parent = f"range-{open_[-1][0]}" if open_ else None
            open_.append((id_, end))
            self._log.keep()
            yield self._span(f"range-{id_}", parent, name or "range", start, end, tid, {"nsight.kind": "range"})

    def _work(self, table: str) -> Iterator[Span]:
        if table not in self._tables:
            return
        query = COPIES_QUERY
        if table == KERNELS:
            query = KERNELS_QUERY if STRINGS in self._tables else KERNELS_WITHOUT_NAMES
        kind = "kernel" if table == KERNELS else "copy"
        for id_, start, end, title, device, size, copy_kind, tid, range_id in self._db.execute(query):
            if not _sound(start, end):
                self._bad("negative duration", table, id_)
                continue
            attributes: dict[str, AttributeValue] = {"nsight.kind": kind}
            if isinstance(device, int):
                attributes["nsight.device"] = device
            if isinstance(size, int):
                attributes["nsight.bytes"] = size
                attributes["nsight.copy"] = title = COPY_KINDS.get(copy_kind, "copy")
            parent = None if range_id is None else f"range-{range_id}"
            self._log.keep()
            yield self._span(f"{kind}-{id_}", parent, title or kind, start, end, tid, attributes)

    def _memory(self) -> Iterator[Sample]:
        if MEMORY not in self._tables:
            return
        held: dict[int, int] = {}
        for id_, start, device, size, operation in self._db.execute(MEMORY_QUERY):
            known = _sound(start, start) and _sound(size, size) and isinstance(device, int)
            if not known or operation not in (0, 1):
                self._bad("not a memory event", MEMORY, id_)
                continue
            held[device] = held.get(device, 0) + (size if operation == 0 else -size)
            self._log.keep()
            labels = {"device": str(device)}
            yield Sample(self._zero_ns + start, "nsight.memory.usage", float(held[device]), labels)

    def _span(
        self,
        id_: str,
        parent: str | None,
        name: str,
        start: int,
        end: int,
        tid: Any,
        more: dict[str, AttributeValue],
    ) -> Span:
        process, thread = ((tid >> 24) & 0xFFFFFF, tid & 0xFFFFFF) if isinstance(tid, int) else (0, 0)
        attributes: dict[str, AttributeValue] = {
            KIND: "profile",
            "process.pid": process,
            "thread.id": thread,
            **more,
        }
        trace = f"nsight-{process}"
        begin, stop = self._zero_ns + start, self._zero_ns + end
        return Span(trace, id_, parent, str(name), begin, stop, service="nsight", attributes=attributes)

    def _bad(self, what: str, table: str, id_: int) -> None:
        self._log.reject(
            what, self._origin.at(id_), f"row {id_} of {table}; expected start <= end as whole numbers"
        )


def _sound(start: Any, end: Any) -> bool:
    return isinstance(start, int) and isinstance(end, int) and 0 <= start <= end < 2**62


READER = Reader(
    id="nsight-sqlite",
    versions=("Nsight Systems since 2021.5",),
    signals=("nvtx ranges", "kernels", "memory copies", "device memory"),
    sniff=sniff,
    read=read,
)
