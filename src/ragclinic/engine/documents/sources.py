"""Where documents come from: the files of a folder, or objects that are given."""

import hashlib
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from ragclinic.engine.documents import CannotRead, Document, read
from ragclinic.errors import BadInput

MAX_FILE_MB = 50.0
_READ_VERSION = 1
"""Part of every content hash: raise it when a reader gives other text for the same file."""


class Loaded(NamedTuple):
    """A document's content by its hash; `document` reads it, which costs more, and raises `CannotRead`."""

    content_hash: str
    document: Callable[[], Document]


class Source(NamedTuple):
    """Where one document comes from; `place` is for people, `load` raises `CannotRead` or `OSError`."""

    id: str
    place: str
    size_bytes: int
    load: Callable[[], Loaded]


def sources_in(folder: Path, max_file_mb: float = MAX_FILE_MB, leave_out: Path | None = None) -> list[Source]:
    """The files of a folder and its sub-folders in order of their paths, hidden ones left out; or one file.

    Raises:
        BadInput: it does not exist or holds no files.
    """
    if folder.is_file():
        return [_file_source(folder.name, folder, max_file_mb)]
    if not folder.is_dir():
        raise BadInput(f"{folder}: not there; expected a folder of documents; check the path")
    left_out = leave_out.resolve() if leave_out else None
    found: list[Source] = []
    for root, folders, names in os.walk(folder):
        here = Path(root)
        folders[:] = sorted(f for f in folders if not f.startswith(".") and (here / f).resolve() != left_out)
        for name in names:
            if not name.startswith("."):
                relative = (here / name).relative_to(folder).as_posix()
                found.append(_file_source(relative, here / name, max_file_mb))
    if not found:
        raise BadInput(
            f"{folder}: no files in it; expected Markdown, text, HTML or PDF; put some there or name another"
        )
    return sorted(found, key=lambda source: source.id)


def given_sources(given: Iterable[Document]) -> list[Source]:
    """The documents that are given, in order of their ids.

    Raises:
        BadInput: there are none, or two have the same id.
    """
    sources: dict[str, Source] = {}
    for document in given:
        if document.id in sources:
            raise BadInput(f"document {document.id!r}: given twice; expected ids that differ; rename one")
        sources[document.id] = _given_source(document)
    if not sources:
        raise BadInput("documents: none given; expected at least one; check where they come from")
    return [sources[doc] for doc in sorted(sources)]


def _file_source(name: str, path: Path, max_file_mb: float) -> Source:
    doc = name.encode("utf-8", "replace").decode()  # a name on disk need not be text
    size_bytes = path.stat().st_size if path.is_file() else 0

    def load() -> Loaded:
        if not path.is_file():
            raise CannotRead("not a file; expected a file; mend or remove the link")
        if size_bytes > max_file_mb * 1e6:
            raise CannotRead(
                f"{size_bytes / 1e6:,.0f} MB; expected at most {max_file_mb:g} MB; split it or raise --max-file-mb"
            )
        data = path.read_bytes()
        return Loaded(_hash(data), lambda: read(doc, data))

    return Source(doc, str(path), size_bytes, load)


def _given_source(document: Document) -> Source:
    def load() -> Loaded:
        if not document.text.strip():
            raise CannotRead("no text in it; expected some; fill it or leave it out")
        return Loaded(_hash(f"{document.title}\0{document.text}".encode("utf-8", "replace")), lambda: document)

    return Source(document.id, document.id, len(document.text), load)


def _hash(data: bytes) -> str:
    return hashlib.sha256(b"%d\0%b" % (_READ_VERSION, data)).hexdigest()
