"""Files to documents. A new format is one file here and one entry in `READERS`, the more certain first."""

from ragclinic.engine.documents.html import READER as HTML
from ragclinic.engine.documents.markdown import READER as MARKDOWN
from ragclinic.engine.documents.pdf import READER as PDF
from ragclinic.engine.documents.text import READER as TEXT
from ragclinic.engine.documents.types import (
    HEAD_BYTES,
    CannotRead,
    Document,
    Extracted,
    FileDocument,
    Reader,
)

__all__ = ["READERS", "CannotRead", "Document", "Extracted", "FileDocument", "Reader", "read", "reader_of"]

READERS: tuple[Reader, ...] = (PDF, HTML, MARKDOWN, TEXT)


def reader_of(name: str, head: bytes) -> Reader:
    """The first reader that claims a file of this name that begins like this."""
    suffix = "." + name.rsplit(".", 1)[-1].lower() if "." in name else ""
    return next(reader for reader in READERS if reader.claims(suffix, head))


def read(name: str, data: bytes) -> FileDocument:
    """The document in a file; `name` is its path inside the folder and becomes the document's id.

    Raises:
        CannotRead: the content cannot be used, or there is no text in it.
    """
    extracted = reader_of(name, data[:HEAD_BYTES]).read(data)
    # A lone surrogate cannot be tokenised or stored; one character stands in for one, so that offsets hold.
    text = extracted.text.encode("utf-8", "replace").decode("utf-8")
    if not text.strip():
        raise CannotRead("no text in it; expected some; fill it or leave it out")
    stem = name.rsplit("/", 1)[-1].rsplit(".", 1)[0]
    return FileDocument(name, " ".join(extracted.title.split()) or stem, text)
