"""Plain text in any usual encoding: the last reader, for whatever no other claims."""

from ragclinic.engine.documents.encoding import decode
from ragclinic.engine.documents.types import Extracted, Reader


def claims(suffix: str, head: bytes) -> bool:
    """Always: a binary file is refused when it is decoded."""
    del suffix, head
    return True


def read(data: bytes) -> Extracted:
    """The text as it is."""
    return Extracted("", decode(data))


READER = Reader(id="text", claims=claims, read=read)
