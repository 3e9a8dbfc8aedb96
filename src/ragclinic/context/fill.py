"""Fills a budget with sentences in a given order and lays them out as text."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from ragclinic.context.candidates import Candidates
from ragclinic.context.compiled import BETWEEN, GAP
from ragclinic.context.tokens import CountTokens


class Run(NamedTuple):
    """Sentences `first` to `last`, which stand next to each other in one stretch."""

    first: int
    last: int


class Filling(NamedTuple):
    """The sentences taken, laid out; `counted` are the tokens of those that were looked at."""

    taken: frozenset[int]
    counted: Mapping[int, int]
    pieces: tuple[tuple[str, int], ...]
    runs: tuple[Run, ...]
    tokens: int


def fill(found: Candidates, order: Sequence[int], budget: int | None, count: CountTokens) -> Filling:
    """Take as many sentences, from the first of `order` on, as the budget holds once they are laid out.

    What is taken is the longest beginning of `order` that fits: first by the sum of the sentences, which is about
    right and asks `count` once a sentence, then by the text itself, from there downwards. Both only grow with the
    budget.
    """
    counted: dict[int, int] = {}
    reading = _reading_order(found)
    size = len(order) if budget is None else _fitting(found, order, budget, count, counted)
    while True:
        taken = frozenset(order[:size])
        runs = tuple(_runs(found, sorted(taken, key=lambda n: (reading[int(found.stretch[n])], n))))
        pieces = tuple(_pieces(found, runs))
        tokens = count(BETWEEN.join(text for text, _ in pieces)) if pieces else 0
        if budget is None or tokens <= budget or not size:
            return Filling(taken, counted, pieces, runs, tokens)
        size -= 1


def _fitting(
    found: Candidates, order: Sequence[int], budget: int, count: CountTokens, counted: dict[int, int]
) -> int:
    """Give how many sentences fit by the sum of their tokens and what stands between them."""
    gap, between = count(GAP), count(BETWEEN)
    taken: set[int] = set()
    opened: set[int] = set()
    bare = fitting = runs = 0
    for number in order:
        counted[number] = count(found.text(number))
        bare += counted[number]
        if bare > budget:
            break
        stretch = int(found.stretch[number])
        runs += 1 - sum(n in taken and found.stretch[n] == stretch for n in (number - 1, number + 1))
        taken.add(number)
        opened.add(stretch)
        if bare + gap * (runs - len(opened)) + between * (len(opened) - 1) <= budget:
            fitting = len(taken)
    return fitting


def _runs(found: Candidates, numbers: Sequence[int]) -> Iterator[Run]:
    """Join the numbers of sentences that stand next to each other."""
    first = last = None
    for number in numbers:
        if first is None or last is None:
            first = last = number
        elif number == last + 1 and found.stretch[number] == found.stretch[last]:
            last = number
        else:
            yield Run(first, last)
            first = last = number
    if first is not None and last is not None:
        yield Run(first, last)


def _pieces(found: Candidates, runs: Sequence[Run]) -> Iterator[tuple[str, int]]:
    """Give the text of each stretch that has runs, with the passage that stands for it."""
    for number, members in groupby(runs, key=lambda run: int(found.stretch[run.first])):
        stretch = found.stretches[number]
        spans = ((found.sentences[run.first].start, found.sentences[run.last].end) for run in members)
        yield GAP.join(stretch.text[start:end] for start, end in spans), stretch.passage


def _reading_order(found: Candidates) -> dict[int, int]:
    """Give the place of each stretch: those of a document together, in the document's own order.

    Documents come in the order of their first passage, whatever its sentences score.
    """
    passages = [found.passages[stretch.parts[0].passage] for stretch in found.stretches]
    first: dict[str | None, int] = {}
    for number, passage in enumerate(passages):
        first.setdefault(passage.doc, number)
    order = sorted(
        range(len(passages)),
        key=lambda i: (i if passages[i].doc is None else first[passages[i].doc], passages[i].start or 0, i),
    )
    return {number: place for place, number in enumerate(order)}
