"""PDF to text, page by page."""

import io
import logging

from ragclinic.engine.documents.types import CannotRead, Extracted, Reader
from ragclinic.errors import MissingExtra

_MARK = b"%PDF-"
_END = b"%%EOF"
_END_WITHIN_BYTES = 1024
"""Where readers look for the end mark; some programs append a little after it."""


def claims(suffix: str, head: bytes) -> bool:
    """By the mark near the beginning, where mailers may have put a few bytes before it; or by suffix."""
    return _MARK in head[:1024] or suffix == ".pdf"


def read(data: bytes) -> Extracted:
    """The text of all pages, blank lines between them.

    Raises:
        CannotRead: cut off, encrypted, damaged, or pictures only.
    """
    try:
        import pypdf
    except ImportError as error:
        raise MissingExtra("pypdf", "local") from error
    if _MARK not in data[:1024]:
        raise CannotRead(f"begins with {data[:5]!r}; expected a PDF; check what the file is")
    if _END not in data[-_END_WITHIN_BYTES:]:
        raise CannotRead("PDF cut off: no end mark; expected a whole file; download or copy it again")
    logging.getLogger("pypdf").setLevel(logging.ERROR)  # it warns of every oddity that it can live with
    try:
        reader = pypdf.PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            raise CannotRead("PDF with a password; expected an open one; save it without")
        text = "\n\n".join(page.extract_text().strip() for page in reader.pages).strip()
        title = str(reader.metadata.title or "") if reader.metadata else ""
    except CannotRead:
        raise
    except ImportError as error:
        raise CannotRead(f"encrypted PDF ({error}); expected an open one; save it without") from error
    except Exception as error:  # a damaged PDF makes pypdf raise nearly anything
        raise CannotRead(
            f"damaged PDF ({type(error).__name__}: {error}); expected a whole one; save it anew"
        ) from error
    if not text:
        raise CannotRead("PDF without text, pictures only; expected text; run OCR on it first")
    return Extracted(title, text)


READER = Reader(id="pdf", claims=claims, read=read)
