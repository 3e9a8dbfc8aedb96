"""Reads a recording into `Seen`, the only thing a diagnosis looks at."""

from pathlib import Path

from ragclinic.signals.memory import memory_samples
from ragclinic.signals.recording import Recording, open_recording
from ragclinic.signals.records import Chunk, Part, Sample, Span
from ragclinic.signals.requests import build_requests, parse_attributes
from ragclinic.signals.seen import Seen


def load(folder: Path, where: str | None = None) -> Seen:
    """Everything a recording holds; `where` is an SQL condition on `spans` that a trace's root must meet.

    Raises:
        BadInput: no recording there, a damaged segment, or a condition that is not SQL.
    """
    recording = open_recording(folder)
    chosen = _traces(recording, where)
    spans = [
        Span(**{**row, "service": row["service"] or "", "attributes": parse_attributes(row["attributes"])})
        for row in recording.table("spans").to_pylist()
        if chosen is None or row["trace_id"] in chosen
    ]
    chunks = [Chunk(**{**row, "keys": _tuple(row["keys"])}) for row in recording.table("chunks").to_pylist()]
    parts = [
        Part(**{**row, "token_keys": _tuple(row["token_keys"])}) for row in recording.table("parts").to_pylist()
    ]
    samples = [
        Sample(row["time_ns"], row["name"], row["value"], _labels(row["labels"]))
        for row in recording.table("samples").to_pylist()
    ]
    requests = build_requests(spans, chunks, parts)
    meta = recording.meta
    return Seen(
        source=str(folder),
        requests=tuple(r for r in requests if r.kind == "user"),
        probes=tuple(r for r in requests if r.kind == "probe"),
        memory=memory_samples(samples),
        settings=meta.get("settings", {}),
        model=meta.get("model"),
        slots=meta.get("slots"),
        kv_bytes_per_token=meta.get("kv_bytes_per_token"),
        machine=meta.get("machine"),
        versions=meta.get("versions", {}),
        notes=tuple(meta.get("notes", ())),
        missing=meta.get("missing_signals", {}),
    )


def _traces(recording: Recording, where: str | None) -> frozenset[str] | None:
    if where is None:
        return None
    rows = recording.sql(f"SELECT DISTINCT trace_id FROM spans WHERE parent_id IS NULL AND ({where})")  # noqa: S608
    return frozenset(rows.column("trace_id").to_pylist())


def _tuple(values: list[int] | None) -> tuple[int, ...] | None:
    return None if values is None else tuple(values)


def _labels(text: str | None) -> dict[str, str]:
    return {name: str(value) for name, value in parse_attributes(text).items()}
