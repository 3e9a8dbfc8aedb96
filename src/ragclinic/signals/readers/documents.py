"""Retrieved documents out of flat attributes: one chunk for each `retrieval.documents.{i}` of a span."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ragclinic.signals.readers.encode import Triples
from ragclinic.signals.readers.names import Role
from ragclinic.signals.schema import TABLES

MAX_RANK = 2**17
# Where frameworks put the document a chunk was cut from, and its place there; most telling first.
DOC_KEYS = ("source", "file_path", "file_name", "document_id", "doc_id", "ref_doc_id", "url", "title")
START_KEYS = ("start_index", "start_char_idx", "start", "offset")
END_KEYS = ("end_index", "end_char_idx", "end")


class Place(NamedTuple):
    """Where in which document a chunk stood."""

    doc: str | None = None
    start: int | None = None
    end: int | None = None


def chunk_table(triples: Triples, roles: list[Role], trace_id: pa.Array, span_id: pa.Array) -> pa.Table:
    """The chunks in the attributes of a batch; `triples` holds nothing but documents."""
    index = np.array([r.number for r in roles], dtype=np.int64)[triples.key]
    place = triples.owner * MAX_RANK + index
    found, row = np.unique(place, return_inverse=True)
    owner, rank = found // MAX_RANK, found % MAX_RANK
    field_of = np.array([r.field for r in roles])[triples.key]
    ids, contents, scores, metadata = (
        _pick(triples.text, row, field_of == name, len(found)) for name in ("id", "content", "score", "metadata")
    )
    places = _places(metadata, contents)
    spans = span_id.take(pa.array(owner))
    columns: dict[str, Any] = {
        "trace_id": trace_id.take(pa.array(owner)),
        "span_id": spans,
        "rank": rank.astype(np.int32),
        "chunk_id": _chunk_ids(ids, contents, spans, rank),
        "doc": [p.doc for p in places] if places else pa.nulls(len(found)),
        "start": [p.start for p in places] if places else pa.nulls(len(found)),
        "end": [p.end for p in places] if places else pa.nulls(len(found)),
        "score": _numbers(scores),
        "tokens": pa.nulls(len(found)),
        "text": contents,
        "keys": pa.nulls(len(found)),
    }
    schema = TABLES["chunks"]
    return pa.table([pa.array(columns[f.name], f.type) for f in schema], schema=schema)


def place_of(metadata: str | None) -> Place:
    """Where a chunk stood, from its metadata as JSON; unknown where the metadata do not say."""
    if metadata is None:
        return Place()
    try:
        told = json.loads(metadata)
    except (ValueError, RecursionError):
        return Place()
    if not isinstance(told, Mapping):
        return Place()
    doc = next((str(told[k]) for k in DOC_KEYS if told.get(k) not in (None, "")), None)
    return Place(doc, _first_int(told, START_KEYS), _first_int(told, END_KEYS))


def _first_int(told: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    values = (told.get(name) for name in names)
    return next((v for v in values if isinstance(v, int) and not isinstance(v, bool) and 0 <= v < 2**62), None)


def _pick(text: pa.Array, row: NDArray[np.int64], mask: NDArray[np.bool_], rows: int) -> pa.Array:
    """The value of one field for each row, null where it has none."""
    source = np.full(rows, -1, dtype=np.int64)
    source[row[mask]] = np.flatnonzero(mask)
    return text.take(pa.array(source, mask=source < 0))


def _chunk_ids(ids: pa.Array, contents: pa.Array, spans: pa.Array, rank: NDArray[np.int64]) -> list[str]:
    """The document's own id, else one made of its text, so that the same text has the same id everywhere."""
    if ids.null_count == 0 and not pc.any(pc.equal(ids, "")).as_py():
        return list(ids.to_pylist())
    return [
        own or (_text_id(text) if text else f"{span}:{place}")
        for own, text, span, place in zip(
            ids.to_pylist(), contents.to_pylist(), spans.to_pylist(), rank.tolist(), strict=True
        )
    ]


def _text_id(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).hexdigest()


def _places(metadata: pa.Array, contents: pa.Array) -> list[Place]:
    """Where the chunks stood, an end that is not told worked out of start and length; none where none tells."""
    if metadata.null_count == len(metadata):
        return []
    lengths = pc.utf8_length(contents).to_pylist()
    told = [place_of(text) for text in metadata.to_pylist()]
    return [
        p if p.end is not None or p.start is None or length is None else p._replace(end=p.start + length)
        for p, length in zip(told, lengths, strict=True)
    ]


def _numbers(texts: pa.Array) -> pa.Array:
    try:
        found = texts.cast(pa.float64())
    except pa.ArrowInvalid:
        return pa.array([_number(text) for text in texts.to_pylist()], pa.float64())
    return pc.if_else(pc.is_finite(found), found, pa.scalar(None, pa.float64()))


def _number(text: str | None) -> float | None:
    try:
        value = float(text) if text else None
    except ValueError:
        return None
    return value if value is not None and abs(value) < float("inf") else None
