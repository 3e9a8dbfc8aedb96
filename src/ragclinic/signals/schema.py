"""The tables of a recording: Arrow schemas, and records turned into rows. Documented in docs/recording.md."""

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from ragclinic.signals.records import Chunk, Part, Record, Sample, Span

VERSION = 1

TABLES: dict[str, pa.Schema] = {
    "spans": pa.schema(
        [
            pa.field("trace_id", pa.string(), nullable=False),
            pa.field("span_id", pa.string(), nullable=False),
            pa.field("parent_id", pa.string()),
            pa.field("name", pa.string(), nullable=False),
            pa.field("start_ns", pa.int64(), nullable=False),
            pa.field("end_ns", pa.int64(), nullable=False),
            pa.field("service", pa.string()),
            pa.field("error", pa.string()),
            pa.field("attributes", pa.string()),  # one JSON object, keys sorted
        ]
    ),
    "samples": pa.schema(
        [
            pa.field("time_ns", pa.int64(), nullable=False),
            pa.field("name", pa.string(), nullable=False),
            pa.field("value", pa.float64(), nullable=False),
            pa.field("labels", pa.string()),  # one JSON object, keys sorted
        ]
    ),
    "chunks": pa.schema(
        [
            pa.field("trace_id", pa.string(), nullable=False),
            pa.field("rank", pa.int32(), nullable=False),
            pa.field("chunk_id", pa.string(), nullable=False),
            pa.field("doc", pa.string()),
            pa.field("start", pa.int64()),
            pa.field("end", pa.int64()),
            pa.field("score", pa.float64()),
            pa.field("tokens", pa.int32()),
            pa.field("text", pa.string()),
            pa.field("keys", pa.list_(pa.int64())),
            pa.field("span_id", pa.string()),
        ]
    ),
    "parts": pa.schema(
        [
            pa.field("trace_id", pa.string(), nullable=False),
            pa.field("position", pa.int32(), nullable=False),
            pa.field("role", pa.string(), nullable=False),
            pa.field("tokens", pa.int32(), nullable=False),
            pa.field("text", pa.string()),
            pa.field("token_keys", pa.list_(pa.int64())),
            pa.field("rank", pa.int32()),
            pa.field("span_id", pa.string()),
        ]
    ),
}

TABLE_OF: dict[type, str] = {Span: "spans", Sample: "samples", Chunk: "chunks", Part: "parts"}
_JSON_COLUMNS = frozenset({"attributes", "labels"})


def to_table(name: str, records: Sequence[Record]) -> pa.Table:
    """The records, all of one kind, as an Arrow table of that name."""
    schema = TABLES[name]
    columns = [[_cell(field.name, getattr(r, field.name)) for r in records] for field in schema]
    return pa.table([pa.array(c, type=f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)


def _cell(column: str, value: Any) -> Any:
    if column in _JSON_COLUMNS:
        return json.dumps(dict(value), ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return value
