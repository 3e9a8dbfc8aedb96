"""One segment on disk: texts and chunks in Parquet, vectors in `.npy`, everything checked by size and CRC-32.

    documents.parquet     id, text
    chunks.parquet        chunk_id, start, end, tokens          in the order of the documents
    chunk_vectors.npy     float32, a row a chunk
    sentence_spans.npy    int64, start and end in characters of the document
    sentence_keys.npy     uint64, a key of the sentence's text
    sentence_vectors.npy  float16, a row a sentence

Each document's sentences are followed by the parts of sentences at its chunks' edges, so that whoever works with a
chunk's own text finds every vector.
"""

import hashlib
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ragclinic.context import split
from ragclinic.engine.chunking import ChunkRecord
from ragclinic.engine.embed import Embed, Vectors
from ragclinic.engine.index.layout import DocumentEntry, SegmentEntry, damaged
from ragclinic.errors import BadInput

_CHUNK_BATCH, _SENTENCE_BATCH = 16, 256
"""Texts handed to the embedder at once; more is no faster, and this bounds the memory."""
_MAP_BYTES = 1 << 20
"""Larger vector files are mapped, not read: the memory is the page cache's, and open files stay few."""
_BLOCK_BYTES = 1 << 20


class Prepared(NamedTuple):
    """A document cut up, ready to be embedded; spans are in characters of its text."""

    id: str
    title: str
    content_hash: str
    text: str
    chunks: Sequence[ChunkRecord]
    sentences: Sequence[tuple[int, int]]
    edges: Sequence[tuple[int, int]]


class Stored(NamedTuple):
    """A document read back; `spans`, `keys` and `vectors` have `entry.rows` rows, sentences first."""

    entry: DocumentEntry
    text: str
    chunk_ids: Sequence[str]
    chunk_spans: NDArray[np.int64]
    chunk_tokens: NDArray[np.int64]
    chunk_vectors: Vectors
    spans: NDArray[np.int64]
    keys: NDArray[np.uint64]
    vectors: NDArray[np.float16]


def prepare(doc: str, title: str, content_hash: str, text: str, chunks: Sequence[ChunkRecord]) -> Prepared:
    """The document with its sentences, and those parts of sentences that its chunks begin and end with."""
    sentences = split(text)
    whole = set(sentences)
    edges = {(c.start + start, c.start + end) for c in chunks for start, end in split(c.text)} - whole
    return Prepared(doc, title, content_hash, text, chunks, sentences, sorted(edges))


def sentence_text(text: str) -> str:
    """A sentence as it is embedded: line breaks and runs of white space as single spaces."""
    return " ".join(text.split())


def sentence_key(text: str) -> int:
    """A key of 64 bits for a sentence's text."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest(), "little")


def write(folder: Path, documents: Sequence[Prepared], embed: Embed) -> tuple[DocumentEntry, ...]:
    """Embeds the documents and writes them into an empty folder, a batch in memory at a time."""
    pq.write_table(
        pa.table(
            {"id": [d.id for d in documents], "text": pa.array([d.text for d in documents], pa.large_string())}
        ),
        folder / "documents.parquet",
        compression="zstd",
    )
    chunks = [chunk for d in documents for chunk in d.chunks]
    columns = {name: [getattr(chunk, name) for chunk in chunks] for name in ("chunk_id", "start", "end", "tokens")}
    pq.write_table(pa.table(columns), folder / "chunks.parquet", compression="zstd")
    spans = [span for d in documents for span in (*d.sentences, *d.edges)]
    texts = [(d.text, span) for d in documents for span in (*d.sentences, *d.edges)]
    keys = np.fromiter((sentence_key(_bare(*t)) for t in texts), np.uint64, len(texts))
    np.save(folder / "sentence_spans.npy", np.array(spans, np.int64).reshape(-1, 2))
    np.save(folder / "sentence_keys.npy", keys)
    chunk_batches = (
        embed([c.text for c in chunks[i : i + _CHUNK_BATCH]]) for i in range(0, len(chunks), _CHUNK_BATCH)
    )
    _write_rows(folder / "chunk_vectors.npy", len(chunks), np.float32, chunk_batches)
    sentence_batches = (
        embed([_bare(*t) for t in texts[i : i + _SENTENCE_BATCH]]) for i in range(0, len(texts), _SENTENCE_BATCH)
    )
    _write_rows(folder / "sentence_vectors.npy", len(texts), np.float16, sentence_batches)
    return tuple(
        DocumentEntry(
            d.id, d.title, d.content_hash, len(d.chunks), len(d.sentences), len(d.sentences) + len(d.edges)
        )
        for d in documents
    )


def read(folder: Path, segment: SegmentEntry) -> list[Stored]:
    """The documents of a segment, after a check of every byte.

    Raises:
        BadInput: a file is missing or is not as it was written; the message names it.
    """
    check(folder, segment.files)
    try:
        texts = pq.read_table(folder / "documents.parquet")["text"].to_pylist()
        chunks = pq.read_table(folder / "chunks.parquet")
        chunk_vectors = np.load(folder / "chunk_vectors.npy")
        spans, keys, vectors = (_load(folder / f"sentence_{name}.npy") for name in ("spans", "keys", "vectors"))
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        raise damaged(folder, f"a file cannot be read ({str(error).splitlines()[0]})") from error
    chunk_ids = chunks["chunk_id"].to_pylist()
    chunk_spans = np.stack([chunks["start"].to_numpy(), chunks["end"].to_numpy()], axis=1)
    chunk_tokens = chunks["tokens"].to_numpy()
    stored: list[Stored] = []
    chunk = row = 0
    for entry, text in zip(segment.documents, texts, strict=True):
        of_chunks, of_rows = slice(chunk, chunk + entry.chunks), slice(row, row + entry.rows)
        stored.append(
            Stored(
                entry,
                text,
                chunk_ids[of_chunks],
                chunk_spans[of_chunks],
                chunk_tokens[of_chunks],
                chunk_vectors[of_chunks],
                spans[of_rows],
                keys[of_rows],
                vectors[of_rows],
            )
        )
        chunk, row = of_chunks.stop, of_rows.stop
    return stored


def check(folder: Path, files: Mapping[str, tuple[int, int]]) -> None:
    """Does nothing where every file has its size and its CRC-32.

    Raises:
        BadInput: a file is missing, or is not as it was written.
    """
    for name, expected in files.items():
        path = folder / name
        try:
            found = size_and_crc(path)
        except OSError as error:
            raise damaged(path, error.strerror or str(error)) from error
        if found != tuple(expected):
            raise damaged(path, f"damaged: {found[0]} bytes, CRC-32 {found[1]:08x}, not as its journal line says")


def is_whole(folder: Path, segment: SegmentEntry) -> bool:
    """Whether every file of the segment is as it was written."""
    try:
        check(folder, segment.files)
    except BadInput:
        return False
    return True


def size_and_crc(path: Path) -> tuple[int, int]:
    """A file's size in bytes and its CRC-32."""
    size = crc = 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            size += len(block)
            crc = zlib.crc32(block, crc)
    return size, crc


def flush_to_disk(path: Path) -> None:
    """Makes sure that a file or a folder survives a power cut."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _bare(text: str, span: tuple[int, int]) -> str:
    return sentence_text(text[span[0] : span[1]])


def _write_rows(path: Path, rows: int, dtype: type[np.floating], batches: Iterator[Vectors]) -> None:
    """Writes an array batch by batch. Plain writes: a mapped file kills the process when the disk is full."""
    first = next(batches, None)
    dim = 0 if first is None else first.shape[1]
    with path.open("wb") as file:
        header = {
            "descr": np.lib.format.dtype_to_descr(np.dtype(dtype)),
            "fortran_order": False,
            "shape": (rows, dim),
        }
        np.lib.format.write_array_header_1_0(file, header)
        while first is not None:
            file.write(first.astype(dtype).tobytes())
            first = next(batches, None)


def _load(path: Path) -> NDArray[Any]:
    array: NDArray[Any] = np.load(path, mmap_mode="r" if path.stat().st_size > _MAP_BYTES else None)
    return array
