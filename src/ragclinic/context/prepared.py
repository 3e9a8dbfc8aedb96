"""A passage made ready for questions: its sentences and all that does not depend on what is asked."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from ragclinic.context.asked import holds_number, names_held
from ragclinic.context.blocks import Kind
from ragclinic.context.sentences import units
from ragclinic.context.words import terms

REMEMBERED = 4096
"""Sentences kept ready, about 5 KB each: the same chunks come again and again in a service."""


@dataclass(frozen=True, slots=True)
class Content:
    """What a sentence holds, wherever it stands. `text` is as an embedder should read it, `length` in terms."""

    text: str
    terms: Mapping[str, int]
    length: int
    number: bool
    names: float


class Sentence(NamedTuple):
    """A sentence, `start` to `end` in characters of the text it was found in."""

    start: int
    end: int
    kind: Kind
    content: Content


def sentences_of(text: str) -> tuple[Sentence, ...]:
    """Give the sentences of a text."""
    return tuple(
        Sentence(unit.start, unit.end, unit.kind, content_of(text[unit.start : unit.end])) for unit in units(text)
    )


@lru_cache(maxsize=REMEMBERED)
def content_of(sentence: str) -> Content:
    """Give what a sentence holds, remembered for the next question."""
    bare = " ".join(sentence.split())
    counted = Counter(terms(bare))
    return Content(
        text=bare,
        terms=counted,
        length=counted.total(),
        number=holds_number(bare),
        names=names_held(bare),
    )
