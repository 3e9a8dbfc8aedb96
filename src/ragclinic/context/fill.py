"""Fills a budget with sentences in a given order and lays them out as text."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ragclinic.context.compiled import BETWEEN, GAP, Kept
from ragclinic.context.passages import Passage
from ragclinic.context.prepared import Sentence
from ragclinic.context.scoring import Column
from ragclinic.context.tokens import CountTokens


class Filling(NamedTuple):
    """The sentences taken, laid out; `counted` are the tokens of those that were looked at."""

    taken: frozenset[int]
    counted: Mapping[int, int]
    pieces: tuple[tuple[str, int], ...]
    kept: tuple[Kept, ...]
    tokens: int


class _Source(NamedTuple):
    """What a filling is made from; sentences are numbered through all passages."""

    passages: Sequence[Passage]
    sentences: Sequence[Sentence]
    passage: NDArray[np.intp]
    begins: Mapping[int, int]
    scores: Column

    def start(self, number: int) -> int:
        """Give where the new part of a sentence begins."""
        return self.begins.get(number, self.sentences[number].start)

    def text(self, number: int) -> str:
        """Give the new part of a sentence."""
        whole: str = self.passages[self.passage[number]].text
        return whole[self.start(number) : self.sentences[number].end]


def fill(
    passages: Sequence[Passage],
    sentences: Sequence[Sentence],
    passage: NDArray[np.intp],
    begins: Mapping[int, int],
    scores: Column,
    order: Sequence[int],
    budget: int | None,
    count: CountTokens,
) -> Filling:
    """Take as many sentences, from the first of `order` on, as the budget holds once they are laid out.

    What is taken is the longest beginning of `order` that fits: first by the sum of the sentences, which is about
    right and asks `count` once a sentence, then by the text itself, from there downwards. Both only grow with the
    budget.
    """
    source = _Source(passages, sentences, passage, begins, scores)
    counted: dict[int, int] = {}
    size = len(order) if budget is None else _fitting(source, order, budget, count, counted)
    while True:
        taken = frozenset(order[:size])
        pieces, kept = _laid_out(source, taken)
        tokens = count(BETWEEN.join(text for text, _ in pieces)) if pieces else 0
        if budget is None or tokens <= budget:
            break
        size -= 1
    return Filling(taken, counted, pieces, kept, tokens)


def _fitting(
    source: _Source, order: Sequence[int], budget: int, count: CountTokens, counted: dict[int, int]
) -> int:
    """Give how many sentences fit by the sum of their tokens and what stands between them."""
    gap, between = count(GAP), count(BETWEEN)
    taken: set[int] = set()
    opened: set[int] = set()
    bare = fitting = gaps = 0
    for number in order:
        counted[number] = count(source.text(number))
        bare += counted[number]
        if bare > budget:
            break
        beside = sum(
            n in taken and source.passage[n] == source.passage[number] and max(n, number) not in source.begins
            for n in (number - 1, number + 1)
        )
        gaps += 1 - beside
        taken.add(number)
        opened.add(int(source.passage[number]))
        if bare + gap * (gaps - len(opened)) + between * (len(opened) - 1) <= budget:
            fitting = len(taken)
    return fitting


def _laid_out(source: _Source, taken: frozenset[int]) -> tuple[tuple[tuple[str, int], ...], tuple[Kept, ...]]:
    """Give the texts, one a passage, and the spans they are made of, in reading order."""
    place = {passage: place for place, passage in enumerate(_reading_order(source.passages))}
    numbers = sorted(taken, key=lambda n: (place[int(source.passage[n])], n))
    pieces: list[tuple[str, int]] = []
    kept: list[Kept] = []
    for passage, members in groupby(numbers, key=lambda n: int(source.passage[n])):
        spans = list(_spans(source, passage, list(members)))
        text = source.passages[passage].text
        pieces.append((GAP.join(text[span.start : span.end] for span in spans), passage))
        kept.extend(spans)
    return tuple(pieces), tuple(kept)


def _spans(source: _Source, passage: int, numbers: Sequence[int]) -> Iterator[Kept]:
    """Join sentences that stand next to each other into spans."""
    run: list[int] = []
    for number in [*numbers, None]:
        if run and (number is None or number != run[-1] + 1 or number in source.begins):
            best = max(float(source.scores[n]) for n in run)
            yield Kept(passage, source.start(run[0]), source.sentences[run[-1]].end, best)
            run = []
        if number is not None:
            run.append(number)


def _reading_order(passages: Sequence[Passage]) -> list[int]:
    """Give the passages with those of a document together, in the document's own order.

    Documents come in the order of their first passage, whatever its sentences score.
    """
    first: dict[str, int] = {}
    for number, passage in enumerate(passages):
        if passage.doc is not None:
            first.setdefault(passage.doc, number)
    return sorted(
        range(len(passages)),
        key=lambda i: (first.get(passages[i].doc or "", i), passages[i].start or 0, i),
    )
