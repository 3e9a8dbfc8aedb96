"""Which sentences of a set of passages repeat others, and how much of a sentence's beginning does."""

from collections.abc import Sequence
from typing import NamedTuple

from ragclinic.context.compiled import Why
from ragclinic.context.duplicates import twins
from ragclinic.context.overlaps import Overlap, overlaps
from ragclinic.context.passages import Passage
from ragclinic.context.prepared import Sentence


class Repeat(NamedTuple):
    """A sentence that need not be said again, and the one (by its number) that says it."""

    why: Why
    twin: int


class Repeats(NamedTuple):
    """`needless` sentences by number; `begins`: from where on a sentence that overlaps another in part is new."""

    needless: dict[int, Repeat]
    begins: dict[int, int]


def find_repeats(
    passages: Sequence[Passage], prepared: Sequence[Sequence[Sentence]], deduplicate: bool, merge_overlap: bool
) -> Repeats:
    """Give what repeats; sentences are numbered through all passages.

    Of a sentence that the edge of a chunk has cut in two, the passage that holds more of it keeps it.
    """
    found = Repeats({}, {})
    first = [0]
    for sentences in prepared:
        first.append(first[-1] + len(sentences))
    if merge_overlap:
        for overlap in overlaps(passages):
            _merge(overlap, prepared, first, found)
    if deduplicate:
        live = [i for i in range(first[-1]) if i not in found.needless]
        every = [sentence for sentences in prepared for sentence in sentences]
        for number, twin in zip(live, twins([every[i] for i in live]), strict=True):
            if twin is not None:
                found.needless[number] = Repeat("duplicate", live[twin])
    return Repeats({i: Repeat(r.why, _last(i, found.needless)) for i, r in found.needless.items()}, found.begins)


def _last(number: int, needless: dict[int, Repeat]) -> int:
    """Follow a sentence to the one that says it and is not itself needless."""
    while number in needless:
        number = needless[number].twin
    return number


def _merge(overlap: Overlap, prepared: Sequence[Sequence[Sentence]], first: Sequence[int], found: Repeats) -> None:
    """Mark the sentences that both passages of an overlap hold, in one of them."""
    ones = [(i, s) for i, s in enumerate(prepared[overlap.first], first[overlap.first]) if s.end > overlap.at]
    others = [
        (i, s) for i, s in enumerate(prepared[overlap.second], first[overlap.second]) if s.start < overlap.chars
    ]
    at = 0
    for number, other in others:
        start, end = other.start + overlap.at, other.end + overlap.at
        while at < len(ones) and ones[at][1].end <= start:
            at += 1
        for twin, one in ones[at:]:
            if one.start >= end:
                break
            if twin in found.needless or number in found.needless:
                continue
            if one.start <= start and end <= one.end:
                found.needless[number] = Repeat("overlap", twin)
            elif start <= one.start and one.end <= end:
                found.needless[twin] = Repeat("overlap", number)
            elif one.end > start:
                found.begins[number] = max(found.begins.get(number, 0), one.end - overlap.at)
