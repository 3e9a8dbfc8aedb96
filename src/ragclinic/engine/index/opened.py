"""An index opened for questions: nearest chunks, documents, and the vectors of their sentences."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ragclinic.engine.chunking import ChunkRecord
from ragclinic.engine.embed import Embed, Vectors
from ragclinic.engine.index import segment
from ragclinic.engine.index.layout import SEGMENTS, IndexMeta, read_journal, read_meta, state_of
from ragclinic.engine.index.vectors import KINDS
from ragclinic.errors import BadInput


class Hit(NamedTuple):
    """A chunk and how near it is to the question (cosine)."""

    chunk: ChunkRecord
    score: float


class Sentences(NamedTuple):
    """Sentences of a document in order: spans in characters of its text, and vectors."""

    spans: NDArray[np.int64]
    vectors: NDArray[np.float16]


class Index:
    """All that a question needs, held in memory; read-only, so safe with threads."""

    def __init__(self, meta: IndexMeta, documents: Sequence[segment.Stored], kind: str = "flat") -> None:
        self.meta = meta
        self.state = state_of(meta, {d.entry.id: d.entry.content_hash for d in documents})
        """Changes whenever an answer could: part of the key of every cached answer."""
        self._documents = documents
        self._by_id = {d.entry.id: d for d in documents}
        self._first = np.cumsum([0, *(d.entry.chunks for d in documents)])
        self._dim = documents[0].chunk_vectors.shape[1]
        self._vectors = KINDS[kind](self._dim)
        for document in documents:
            self._vectors.add(document.chunk_vectors)
        keys = np.concatenate([d.keys for d in documents])
        self._order = np.argsort(keys, kind="stable")
        self._keys = keys[self._order]
        self._first_row = np.cumsum([0, *(d.entry.rows for d in documents)])

    @classmethod
    def open(cls, folder: Path, embedder_identity: str, kind: str = "flat") -> Self:
        """Opens the index that `ingest` wrote, after a check of every byte.

        Raises:
            BadInput: there is none, it is damaged, empty, or was made with another embedder.
        """
        meta = read_meta(folder)
        if meta.embedder != embedder_identity:
            raise BadInput(
                f"{folder}: made with embedder {meta.embedder}; expected {embedder_identity}; "
                "set embedder.model to the first, or ingest again into another folder"
            )
        journal = read_journal(folder)
        wanted = {name for name, _ in journal.live.values()}
        stored = {
            s.name: segment.read(folder / SEGMENTS / s.name, s) for s in journal.segments if s.name in wanted
        }
        documents = [stored[name][position] for _, (name, position) in sorted(journal.live.items())]
        if not documents:
            raise BadInput(f"{folder}: no documents in it; expected some; run ragclinic ingest again")
        return cls(meta, documents, kind)

    def __len__(self) -> int:
        """How many chunks there are."""
        return len(self._vectors)

    def search(self, vector: Vectors, k: int, pool: int = 0) -> list[Hit]:
        """The `k` nearest chunks, best first.

        With a `pool`, so many candidates are judged again by chunk and best sentence together, the mean of both.
        """
        scores, rows = self._vectors.search(vector, max(k, pool))
        if pool:
            best = np.array([self._best_sentence(int(row), vector) for row in rows], np.float32)
            scores = np.asarray((scores + best) / 2, np.float32)
            order = np.argsort(-scores, kind="stable")
            scores, rows = scores[order], rows[order]
        return [Hit(self._chunk(int(row)), float(score)) for score, row in zip(scores[:k], rows[:k], strict=True)]

    def documents(self) -> dict[str, str]:
        """The title of each document by its id."""
        return {d.entry.id: d.entry.title for d in self._documents}

    def text(self, doc: str) -> str:
        """A document's text, into which all offsets point."""
        return self._by_id[doc].text

    def sentences(self, doc: str, start: int = 0, end: int | None = None) -> Sentences:
        """The sentences of a document that lie at least in part between two offsets."""
        document = self._by_id[doc]
        spans = document.spans[: document.entry.sentences]
        first = int(np.searchsorted(spans[:, 1], start, side="right"))
        stop = len(spans) if end is None else int(np.searchsorted(spans[:, 0], end, side="left"))
        return Sentences(spans[first:stop], document.vectors[first:stop])

    def remembering(self, embed: Embed) -> Embed:
        """An embedder that answers from the index where it has the sentence, and else asks `embed`."""

        def recall(texts: Sequence[str]) -> Vectors:
            keys = np.fromiter(
                (segment.sentence_key(segment.sentence_text(t)) for t in texts), np.uint64, len(texts)
            )
            places = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
            there = self._keys[places] == keys if len(self._keys) else np.zeros(len(texts), bool)
            asked = [text for text, known in zip(texts, there, strict=True) if not known]
            vectors = np.empty((len(texts), self._dim), np.float32)
            for at in np.flatnonzero(there):
                vectors[at] = self._row(int(self._order[places[at]]))
            if asked:
                vectors[~there] = embed(asked)
            return vectors

        return recall

    def _row(self, row: int) -> NDArray[np.float16]:
        document = int(np.searchsorted(self._first_row, row, side="right")) - 1
        vector: NDArray[np.float16] = self._documents[document].vectors[row - self._first_row[document]]
        return vector

    def _locate(self, row: int) -> tuple[segment.Stored, int]:
        """The document that a chunk belongs to, and which of its chunks it is."""
        document = int(np.searchsorted(self._first, row, side="right")) - 1
        return self._documents[document], row - int(self._first[document])

    def _chunk(self, row: int) -> ChunkRecord:
        stored, at = self._locate(row)
        start, end = (int(offset) for offset in stored.chunk_spans[at])
        return ChunkRecord(
            stored.chunk_ids[at], stored.entry.id, start, end, int(stored.chunk_tokens[at]), stored.text[start:end]
        )

    def _best_sentence(self, row: int, vector: Vectors) -> float:
        stored, at = self._locate(row)
        start, end = (int(offset) for offset in stored.chunk_spans[at])
        vectors = self.sentences(stored.entry.id, start, end).vectors
        return float((vectors.astype(np.float32) @ vector).max()) if len(vectors) else -1.0
