"""All sentences that a context can be made of, with where they stand and what they lean on."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from ragclinic.context.leads import leads
from ragclinic.context.passages import Passage
from ragclinic.context.prepared import Sentence, sentences_of
from ragclinic.context.stretches import Places, Stretch, places, stretches

Numbers = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Candidates:
    """Sentences of all stretches, one after the other; each field but the first two has one entry a sentence.

    `starts` and `ends` are characters of the sentence's stretch. `passage` is the first passage that it stands in,
    `retrieved` the best score of the passages that hold it (None where not every passage has a score). `leaning`
    are the numbers of the sentences without which it is hard to understand, the nearest first.
    """

    passages: Sequence[Passage]
    stretches: Sequence[Stretch]
    sentences: Sequence[Sentence]
    stretch: Numbers
    passage: Numbers
    places: Sequence[Places]
    leaning: Sequence[tuple[int, ...]]
    retrieved: NDArray[np.float64] | None

    def __len__(self) -> int:
        """Give how many sentences there are."""
        return len(self.sentences)

    def text(self, number: int) -> str:
        """Give a sentence as it is written."""
        sentence = self.sentences[number]
        return self.stretches[int(self.stretch[number])].text[sentence.start : sentence.end]


def gather(passages: Sequence[Passage], merge_overlap: bool = True) -> Candidates:
    """Give the sentences of passages; with `merge_overlap`, text that chunks repeat of each other comes once."""
    joined = stretches(passages, merge_overlap)
    sentences: list[Sentence] = []
    where: list[Places] = []
    leaning: list[tuple[int, ...]] = []
    sizes = []
    for stretch in joined:
        own, first = sentences_of(stretch.text), len(sentences)
        sentences.extend(own)
        where.extend(places(stretch, [(s.start, s.end) for s in own]))
        leaning.extend(tuple(first + number for number in numbers) for numbers in leads(own))
        sizes.append(len(own))
    return Candidates(
        passages=passages,
        stretches=joined,
        sentences=sentences,
        stretch=np.repeat(np.arange(len(joined)), sizes),
        passage=np.array([place.own[0].passage for place in where], np.intp),
        places=where,
        leaning=leaning,
        retrieved=_retrieved(passages, where),
    )


def _retrieved(passages: Sequence[Passage], where: Sequence[Places]) -> NDArray[np.float64] | None:
    """Give for each sentence the best score of the passages that hold it."""
    scores = [passage.score for passage in passages if passage.score is not None and isfinite(passage.score)]
    if len(scores) < len(passages):
        return None
    return np.array([max(scores[span.passage] for span in (*p.own, *p.copies)) for p in where], np.float64)
