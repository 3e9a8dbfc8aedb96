"""What a document is, and what a reader of one file format is."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

HEAD_BYTES = 8192
"""What a reader may look at to tell whether a file is its own."""


class Document(Protocol):
    """Anything with an id, a title and a text, as the demo corpora have."""

    @property
    def id(self) -> str:
        """Names the document within its index; a file's path inside the folder."""

    @property
    def title(self) -> str:
        """What a reader calls it."""

    @property
    def text(self) -> str:
        """What is cut into chunks; all offsets are in characters of it."""


@dataclass(frozen=True, slots=True)
class FileDocument:
    """A document read from a file."""

    id: str
    title: str
    text: str


class Extracted(NamedTuple):
    """What a reader got out of a file; `title` is empty where the file has none."""

    title: str
    text: str


class CannotRead(Exception):
    """A file's content cannot be used; the text says what was found, what was expected and what to do."""


@dataclass(frozen=True, slots=True)
class Reader:
    """One file format.

    `claims` looks at the lower-case suffix and the first bytes; `read` gets the whole file, raises `CannotRead`.
    """

    id: str
    claims: Callable[[str, bytes], bool]
    read: Callable[[bytes], Extracted]
