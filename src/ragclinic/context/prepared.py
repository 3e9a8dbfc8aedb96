"""A passage made ready for questions: its sentences and all that does not depend on what is asked."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from ragclinic.context.asked import holds_number, names_held
from ragclinic.context.blocks import Kind
from ragclinic.context.redundancy import Shingles, shingles
from ragclinic.context.sentences import units
from ragclinic.context.words import terms

REMEMBERED = 512
"""Passages kept ready; one of 500 tokens takes about 60 KB (the same chunks come again and again in a service)."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of a passage, `start` to `end` in characters of the passage's text."""

    start: int
    end: int
    kind: Kind
    text: str
    terms: Mapping[str, int]
    length: int
    shingles: Shingles
    number: bool
    names: float


@lru_cache(maxsize=REMEMBERED)
def sentences_of(text: str) -> tuple[Sentence, ...]:
    """Give the sentences of a passage, remembered for the next question."""
    found = []
    for unit in units(text):
        bare = " ".join(text[unit.start : unit.end].split())
        counted = Counter(terms(bare))
        found.append(
            Sentence(
                start=unit.start,
                end=unit.end,
                kind=unit.kind,
                text=bare,
                terms=counted,
                length=counted.total(),
                shingles=shingles(bare),
                number=holds_number(bare),
                names=names_held(bare),
            )
        )
    return tuple(found)
