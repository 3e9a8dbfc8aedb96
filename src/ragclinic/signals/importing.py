"""From any files to a recording: recognise, read, keep account, align clocks, join both ends of each request."""

import json
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO, Protocol

from ragclinic.errors import BadInput
from ragclinic.signals.content import ContentPolicy
from ragclinic.signals.import_join import DUPLICATE, Finished, finish
from ragclinic.signals.import_tables import ImportTables
from ragclinic.signals.readers import READERS, reader_for
from ragclinic.signals.readers.reader import Bad, Origin, Reader, ReadLog, ReadOptions
from ragclinic.signals.recording import META
from ragclinic.signals.schema import VERSION
from ragclinic.signals.source import Opened, Source, find_sources, open_source

NO_READER = "format not known"
DAMAGED = "damaged file"
PARTIAL = ".partial"


class Progress(Protocol):
    """What is told while reading, in bytes of the files as they lie on disk."""

    def start(self, total_bytes: int | None) -> None:
        """Once, with the size of all sources, or None where one cannot be known."""

    def advance(self, path: str, taken_bytes: int) -> None:
        """Often, with the bytes taken since the last call."""


class NoProgress:
    """Tells nobody."""

    def start(self, total_bytes: int | None) -> None:
        """Nothing."""

    def advance(self, path: str, taken_bytes: int) -> None:
        """Nothing."""


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """What a person may say: how much text is kept, names of their own, clock offsets (ms) by end of a path."""

    policy: ContentPolicy = field(default_factory=ContentPolicy)
    tenant: str | None = None
    fields: Mapping[str, str] = field(default_factory=dict)
    clock_offsets_ms: Mapping[str, float] = field(default_factory=dict)
    format: str | None = None


@dataclass(frozen=True, slots=True)
class SourceReport:
    """What became of one input. `format` is None where no reader knew it."""

    path: str
    format: str | None
    kept: int = 0
    skipped: int = 0
    bad: tuple[Bad, ...] = ()
    missing: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ImportReport:
    """The account of an import. Rows in = `kept` + `skipped` + `bad_rows`."""

    folder: Path
    sources: tuple[SourceReport, ...]
    rows: Mapping[str, int]
    finished: Finished

    @property
    def kept(self) -> int:
        """Rows of the input that are in the recording."""
        return sum(s.kept for s in self.sources) - self.finished.duplicates

    @property
    def skipped(self) -> int:
        """Rows that hold nothing for a recording."""
        return sum(s.skipped for s in self.sources)

    @property
    def bad(self) -> tuple[Bad, ...]:
        """Unreadable rows by kind, over all sources, most frequent first."""
        found: dict[str, Bad] = {}
        for bad in (b for s in self.sources for b in s.bad):
            old = found.get(bad.kind)
            found[bad.kind] = bad if old is None else replace(old, count=old.count + bad.count)
        if self.finished.duplicates:
            found[DUPLICATE] = self.finished.duplicate_rows(tuple(s.path for s in self.sources))
        return tuple(sorted(found.values(), key=lambda b: (-b.count, b.kind)))

    @property
    def bad_rows(self) -> int:
        """All rows counted as bad."""
        return sum(b.count for b in self.bad)

    @property
    def clock_offsets_ms(self) -> dict[str, float]:
        """What was added to the clocks that were moved, by source and service."""
        named = {
            f"{self.sources[source].path} {service}".strip(): offset.add_ns / 1e6
            for (source, service), offset in self.finished.clocks.items()
        }
        return dict(sorted(named.items()))

    @property
    def missing(self) -> Mapping[str, str]:
        """Signals that no source held though one of their formats could, with the line that turns each on."""
        formats = {r.id: r for r in READERS}
        told: dict[str, str] = {}
        seen: set[str] = set()
        for source in self.sources:
            told.update(source.missing)
            if source.kept and source.format in formats:
                seen.update(set(formats[source.format].signals).difference(source.missing))
        return {signal: how for signal, how in told.items() if signal not in seen}


def import_paths(
    paths: Sequence[str | Path],
    out: Path,
    options: ImportOptions | None = None,
    progress: Progress | None = None,
    stdin: BinaryIO | None = None,
) -> ImportReport:
    """Reads all that is behind `paths` into a new recording at `out`; nothing is left there where that fails.

    Raises:
        BadInput: nothing there, nothing that any reader knows, or `out` holds something already.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise BadInput(f"{out}: holds something already; expected a new folder; choose another or remove it")
    sources = find_sources(paths, stdin)
    partial = out.with_name(out.name + PARTIAL)
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        report = _import(sources, partial, options or ImportOptions(), progress or NoProgress())
        if out.exists():
            out.rmdir()
        partial.replace(out)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    return replace(report, folder=out)


def read_all(
    sources: Sequence[Source], tables: ImportTables, options: ImportOptions, progress: Progress
) -> tuple[SourceReport, ...]:
    """Reads sources into tables, those first that others look ids up in. An unknown or broken one is reported."""
    read_options = ReadOptions(tenant=options.tenant, fields=options.fields)
    order = sorted(range(len(sources)), key=lambda i: not _goes_first(sources[i], len(sources)))
    reports = {i: _read_source(i, sources[i], tables, options, read_options, progress) for i in order}
    return tuple(reports[i] for i in range(len(sources)))


def _goes_first(source: Source, count: int) -> bool:
    """Whether others look its ids up; a pipe can be opened once only and is read when it comes."""
    if count == 1 or source.size_bytes is None or not any(reader.first for reader in READERS):
        return False
    try:
        with open_source(source) as opened:
            reader = reader_for(opened.head)
    except BadInput:
        return False
    return reader is not None and reader.first


def _import(sources: list[Source], folder: Path, options: ImportOptions, progress: Progress) -> ImportReport:
    sizes = [source.size_bytes for source in sources]
    progress.start(None if None in sizes else sum(size or 0 for size in sizes))
    started_ns = time.time_ns()
    tables = ImportTables(folder, options.policy)
    try:
        reports = read_all(sources, tables, options, progress)
    finally:
        tables.close()
    _check_something(reports)
    finished = finish(folder, tables.rows, _offsets(sources, options.clock_offsets_ms))
    report = ImportReport(folder, reports, finished.rows, finished)
    _describe(folder, report, options, started_ns)
    return report


def _read_source(
    number: int,
    source: Source,
    tables: ImportTables,
    options: ImportOptions,
    read_options: ReadOptions,
    progress: Progress,
) -> SourceReport:
    log = ReadLog()
    reader: Reader | None = None
    try:
        with open_source(source, lambda taken: progress.advance(source.path, taken)) as opened:
            reader = _chosen(options.format, opened.head)
            if reader is None:
                return _unknown(source, opened)
            for found in reader.read(opened.stream, opened.origin, log, read_options):
                tables.add(found, number)
            for damage in opened.damage:
                _reject_damage(log, source, damage)
    except BadInput as error:
        _reject_damage(log, source, error)
    finally:
        tables.end_source(number)
    name = reader.id if reader is not None else None
    return SourceReport(source.path, name, log.kept, log.skipped, log.bad, log.missing, tuple(log.notes))


def _reject_damage(log: ReadLog, source: Source, damage: BadInput) -> None:
    log.reject(DAMAGED, Origin(source.path), str(damage).removeprefix(f"{source.path}: "))


def _chosen(wanted: str | None, head: bytes) -> Reader | None:
    if wanted is None:
        return reader_for(head)
    known = {reader.id: reader for reader in READERS}
    if wanted not in known:
        raise BadInput(f"format {wanted!r}: not known; expected one of {', '.join(sorted(known))}")
    return known[wanted]


def _unknown(source: Source, opened: Opened) -> SourceReport:
    if not opened.head:
        return SourceReport(source.path, None, notes=("empty file",))
    shown = opened.head[:40].decode("utf-8", "replace")
    where = Origin(source.path, 1)
    return SourceReport(source.path, None, bad=(Bad(NO_READER, 1, where, f"begins with {shown!r}"),))


def _check_something(reports: Sequence[SourceReport]) -> None:
    if any(report.format is not None for report in reports):
        return
    first = next((b for r in reports for b in r.bad), None)
    path = reports[0].path if reports else "input"
    found = f"{first.kind} ({first.found})" if first is not None else "empty"
    raise BadInput(
        f"{path}: {found}; expected a format that `ragclinic import --list-formats` names; check the file"
    )


def _offsets(sources: Sequence[Source], by_hand: Mapping[str, float]) -> dict[int, int]:
    """Offsets in nanoseconds by number of source; the end of its path names a source, `*` all."""
    found: dict[int, int] = {}
    for name, offset_ms in by_hand.items():
        meant = [i for i, source in enumerate(sources) if name == "*" or source.path.endswith(name)]
        if not meant:
            known = ", ".join(source.path for source in sources[:5])
            raise BadInput(f"--clock-offset {name}: no such input; expected the end of one of: {known}; check it")
        found.update(dict.fromkeys(meant, round(offset_ms * 1e6)))
    return found


def _describe(folder: Path, report: ImportReport, options: ImportOptions, started_ns: int) -> None:
    """Writes the recording's description. Examples of bad rows stay out of it: they may hold what users wrote."""
    meta = {
        "schema_version": VERSION,
        "content": options.policy.content,
        "started_ns": started_ns,
        "ended_ns": time.time_ns(),
        "imported": True,
        "sources": [
            {
                "path": s.path,
                "format": s.format,
                "kept": s.kept,
                "skipped": s.skipped,
                "bad": {b.kind: b.count for b in s.bad},
                "notes": list(s.notes),
            }
            for s in report.sources
        ],
        "notes": sorted({note for source in report.sources for note in source.notes}),
        "clock_offsets_ms": report.clock_offsets_ms,
        "joined": report.finished.joined,
        "missing_signals": dict(report.missing),
    }
    (folder / META).write_text(json.dumps(meta, ensure_ascii=False, indent=1), "utf-8")
