"""Passages that overlap put together again, as the document had them.

A sentence that the edge of a chunk has cut is whole again in a stretch, and its neighbours are its real ones.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ragclinic.context.overlaps import overlaps
from ragclinic.context.passages import Passage


class Part(NamedTuple):
    """Passage number `passage` stands in a stretch from character `start` to `end`."""

    passage: int
    start: int
    end: int


class Span(NamedTuple):
    """Characters `start` to `end` of passage number `passage`."""

    passage: int
    start: int
    end: int


class Stretch(NamedTuple):
    """Text without repetition, and the passages in it by their start; each agrees with the text to the letter."""

    text: str
    parts: tuple[Part, ...]

    @property
    def passage(self) -> int:
        """The passage that stands for the stretch: the first of those given."""
        return min(part.passage for part in self.parts)


class Places(NamedTuple):
    """Where a span stands in the passages: `own` holds it once, `copies` what others have of it."""

    own: tuple[Span, ...]
    copies: tuple[Span, ...]


def stretches(passages: Sequence[Passage], merge_overlap: bool) -> list[Stretch]:
    """Give the passages as stretches, in the order of the first passage of each; empty passages are left out."""
    beginning: dict[int, list[tuple[int, int]]] = {}
    seconds = set()
    for overlap in overlaps(passages) if merge_overlap else ():
        beginning.setdefault(overlap.first, []).append((overlap.second, overlap.at))
        seconds.add(overlap.second)
    # Those that begin a chain come first; the rest stand in rings, which repetitive text can make.
    roots = sorted(range(len(passages)), key=lambda number: (number in seconds, number))
    placed: set[int] = set()
    found = (
        _grown(passages, root, beginning, placed) for root in roots if root not in placed and passages[root].text
    )
    return sorted(found, key=lambda stretch: stretch.passage)


def _grown(
    passages: Sequence[Passage], root: int, beginning: Mapping[int, Sequence[tuple[int, int]]], placed: set[int]
) -> Stretch:
    """Give the stretch that begins with a passage, marking what it takes in; what disagrees is left out."""
    placed.add(root)
    text = passages[root].text
    parts = [Part(root, 0, len(text))]
    for part in parts:  # grows as it goes
        for second, at in beginning.get(part.passage, ()):
            start, own = part.start + at, passages[second].text
            if second in placed or not own or not text.startswith(own[: len(text) - start], start):
                continue
            placed.add(second)
            text += own[len(text) - start :]
            parts.append(Part(second, start, start + len(own)))
    return Stretch(text, tuple(sorted(parts, key=lambda part: (part.start, part.passage))))


def places(stretch: Stretch, spans: Sequence[tuple[int, int]]) -> list[Places]:
    """Give the places in the passages of spans of a stretch, which are in order and do not overlap."""
    found = []
    active: list[Part] = []
    coming = iter((*stretch.parts, None))
    following = next(coming)
    for start, end in spans:
        while following is not None and following.start < end:
            active.append(following)
            following = next(coming)
        active = [part for part in active if part.end > start]
        found.append(_placed(active, start, end))
    return found


def _placed(active: Sequence[Part], start: int, end: int) -> Places:
    """Give the places of one span; `active` are the parts that hold some of it."""
    own: list[Span] = []
    owners: set[int] = set()
    at = start
    while at < end:
        part = max(
            (p for p in active if p.start <= at < p.end), key=lambda p: (min(p.end, end), -p.start, -p.passage)
        )
        own.append(Span(part.passage, at - part.start, min(part.end, end) - part.start))
        owners.add(part.passage)
        at = part.end
    copies = (
        Span(part.passage, max(start, part.start) - part.start, min(end, part.end) - part.start)
        for part in active
        if part.passage not in owners
    )
    return Places(tuple(own), tuple(copies))
