"""What an import did, for a person and for a program: rows kept, rows that could not be read, clocks, joins."""

import json
from collections.abc import Iterable

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ragclinic.report.text import Lang, Words, visible
from ragclinic.signals.importing import ImportReport, SourceReport
from ragclinic.signals.readers import Reader

MAX_SOURCES = 20
"""More than this many inputs are summed up in a line."""


def formats_json(readers: Iterable[Reader]) -> str:
    """What `import --list-formats --json` prints."""
    rows = [{"format": r.id, "versions": list(r.versions), "signals": list(r.signals)} for r in readers]
    return json.dumps(rows, ensure_ascii=False, indent=2) + "\n"


def print_formats(console: Console, readers: Iterable[Reader], lang: Lang = "en") -> None:
    """The formats as a table."""
    words = Words(lang)
    table = Table(box=None, header_style="bold")
    for column in ("format", "versions", "signals"):
        table.add_column(words(f"imported.{column}"), overflow="fold")
    for reader in readers:
        table.add_row(reader.id, ", ".join(reader.versions), ", ".join(reader.signals))
    console.print(table)


def import_json(report: ImportReport) -> str:
    """What `import --json` prints. Rows in = kept + skipped + the bad ones."""
    found = {
        "recording": str(report.folder),
        "rows": dict(report.rows),
        "kept": report.kept,
        "skipped": report.skipped,
        "bad": [
            {"kind": b.kind, "count": b.count, "first": str(b.first), "found": visible(b.found)}
            for b in report.bad
        ],
        "sources": [_source(s) for s in report.sources],
        "clock_offsets_ms": report.clock_offsets_ms,
        "joined": report.finished.joined,
        "orphans": report.finished.orphans,
        "missing_signals": [{"signal": s, "how": how} for s, how in report.missing.items()],
    }
    return json.dumps(found, ensure_ascii=False, indent=2) + "\n"


def print_import(console: Console, report: ImportReport, lang: Lang = "en") -> None:
    """The account of an import, the unreadable rows by kind with the first place of each."""
    words = Words(lang)
    rows = report.rows
    _line(console, words("imported.recording", path=str(report.folder)), "bold")
    _line(console, words("imported.rows", **{name: f"{rows.get(name, 0):,}" for name in rows}))
    for source in report.sources[:MAX_SOURCES]:
        _line(console, "  " + _source_line(source, words), "" if source.format else "yellow")
    if len(report.sources) > MAX_SOURCES:
        _line(console, "  " + words("imported.more", count=str(len(report.sources) - MAX_SOURCES)), "dim")
    for bad in report.bad:
        told = words("imported.bad", count=f"{bad.count:,}", kind=bad.kind, place=str(bad.first), found=bad.found)
        _line(console, told, "yellow")
    for name, offset_ms in report.clock_offsets_ms.items():
        _line(console, words("imported.clock", name=name, offset=f"{offset_ms:+,.1f}"))
    if report.finished.joined:
        _line(console, words("imported.joined", count=f"{report.finished.joined:,}"))
    if report.finished.orphans:
        _line(console, words("imported.orphans", count=f"{report.finished.orphans:,}"), "yellow")
    for signal, how in report.missing.items():
        _line(console, words("imported.missing", signal=signal, how=how), "dim")
    _line(console, words("imported.next", path=str(report.folder)), "dim")


def _source(source: SourceReport) -> dict[str, object]:
    return {
        "path": source.path,
        "format": source.format,
        "kept": source.kept,
        "skipped": source.skipped,
        "bad": {b.kind: b.count for b in source.bad},
        "notes": list(source.notes),
    }


def _source_line(source: SourceReport, words: Words) -> str:
    if source.format is None:
        return words("imported.unknown", path=source.path, notes="; ".join(source.notes))
    notes = f" ({'; '.join(source.notes)})" if source.notes else ""
    return words("imported.source", path=source.path, format=source.format, kept=f"{source.kept:,}") + notes


def _line(console: Console, text: str, style: str = "") -> None:
    console.print(Text(visible(text), style=style), soft_wrap=True)
