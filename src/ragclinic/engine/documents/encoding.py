"""Bytes to text: which encoding it is, or what kind of binary file."""

import codecs
from contextlib import suppress

from ragclinic.engine.documents.types import HEAD_BYTES, CannotRead

_MAGIC = (
    (b"PK\x03\x04", "a zip archive or an Office file"),
    (b"\x89PNG", "a PNG picture"),
    (b"\xff\xd8\xff", "a JPEG picture"),
    (b"GIF8", "a GIF picture"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"\xd0\xcf\x11\xe0", "an old Office file"),
    (b"\x7fELF", "a program"),
    (b"MZ", "a program"),
    (b"GGUF", "a model"),
    (b"PAR1", "a Parquet file"),
    (b"SQLite format 3", "an SQLite database"),
)
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark is its beginning
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_CONTROL = bytes(set(range(32)) - {*b"\t\n\v\f\r\x1b"})
_CONTROL_SHARE = 0.02
"""More of the bytes than this being control codes: no text (a log with colours has none but escapes)."""
_COMMON_SHARE = 0.4
"""Of the characters that GB18030 reads, as many at least must be everyday ones (GB 2312). Simplified Chinese has
nearly all, traditional about half; Latin-1 read as GB18030 has next to none."""


def binary_kind(head: bytes) -> str | None:
    """What kind of binary file begins like this; None where it can be text."""
    if any(head.startswith(mark) for mark, _ in _BOMS):
        return None
    known = next((kind for magic, kind in _MAGIC if head.startswith(magic)), None)
    if known and (b"\0" in head or not head.isascii()):
        return known
    if b"\0" in head or len(head) - len(head.translate(None, _CONTROL)) > _CONTROL_SHARE * len(head):
        return "binary data"
    return None


def decode(data: bytes) -> str:
    """The text: UTF-8, UTF-16 and UTF-32 by their marks, GB18030, Windows-1252; line ends become `\\n`.

    Raises:
        CannotRead: it is binary, or none of these.
    """
    if kind := binary_kind(data[:HEAD_BYTES]):
        raise CannotRead(f"{kind}; expected Markdown, text, HTML or PDF; convert it or leave it out")
    text = _decoded(data)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _decoded(data: bytes) -> str:
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, "replace")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        place = error.start
    with suppress(UnicodeDecodeError):
        if _reads_as_chinese(text := data.decode("gb18030")):
            return text
    with suppress(UnicodeDecodeError):
        return data.decode("cp1252")
    raise CannotRead(f"byte {place} is not UTF-8, nor is the file GB18030; expected text; save it as UTF-8")


def _reads_as_chinese(text: str) -> bool:
    foreign = "".join(character for character in text if character > "\x7f")
    return len(foreign.encode("gb2312", "ignore")) // 2 >= _COMMON_SHARE * len(foreign)
