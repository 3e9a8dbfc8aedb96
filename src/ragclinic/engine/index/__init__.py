"""The index: a folder that `ingest` writes and `Index.open` reads. `vectors.KINDS` lists the kinds of search."""

from ragclinic.engine.index.opened import Hit, Index, Sentences

__all__ = ["Hit", "Index", "Sentences"]
