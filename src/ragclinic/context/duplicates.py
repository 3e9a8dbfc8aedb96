"""Sentences that say nothing that another has not said.

A near duplicate shares most shingles with a sentence kept *and* has no word of its own, so that sentences which
differ in a number, a name or a "not" are both kept, however alike they look. Found exactly, without MinHash: two
sets that are alike enough must share one of their rarest few shingles (prefix filtering), which for sentences
leaves few pairs to compare.
"""

from collections import Counter
from collections.abc import Sequence

from ragclinic.context.prepared import Content
from ragclinic.context.redundancy import jaccard
from ragclinic.context.stop_terms import STOP_TERMS

NEAR = 0.8
"""Sentences at least this alike (Jaccard similarity of their shingles) can be near duplicates."""
MIN_SHINGLES = 4
"""Shorter sentences are compared as they are."""


def twins(sentences: Sequence[Content]) -> list[int | None]:
    """Give for each sentence the earlier one that makes it needless, or None."""
    found: list[int | None] = [None] * len(sentences)
    first: dict[str, int] = {}
    for number, sentence in enumerate(sentences):
        twin = first.setdefault(sentence.text.casefold(), number)
        found[number] = twin if twin != number else None
    _find_near(sentences, found)
    return [twin if twin is None else _first(twin, found) for twin in found]


def _first(number: int, found: Sequence[int | None]) -> int:
    """Follow a sentence to one that repeats none."""
    while (twin := found[number]) is not None:
        number = twin
    return number


def _find_near(sentences: Sequence[Content], found: list[int | None]) -> None:
    """Fill in the near duplicates among the sentences that have no exact one."""
    single = [i for i, twin in enumerate(found) if twin is None and len(sentences[i].shingles) >= MIN_SHINGLES]
    spread = Counter(shingle for i in single for shingle in sentences[i].shingles)
    holders: dict[str, list[int]] = {}
    for number in single:
        own = sentences[number].shingles
        common = [shingle for shingle in own if spread[shingle] > 1]
        if len(common) < NEAR * len(own):
            continue
        rarest = sorted(own, key=lambda shingle: (spread[shingle], shingle))[: len(own) - int(NEAR * len(own)) + 1]
        near = {other for shingle in rarest for other in holders.get(shingle, ())}
        found[number] = next(
            (other for other in sorted(near) if _says_all(sentences[other], sentences[number])), None
        )
        if found[number] is None:
            for shingle in rarest:
                holders.setdefault(shingle, []).append(number)


def _says_all(kept: Content, other: Content) -> bool:
    """Tell whether `kept` is like `other` and holds every word of it that names something."""
    if jaccard(kept.shingles, other.shingles) < NEAR:
        return False
    return all(term in kept.terms or term in STOP_TERMS for term in other.terms)
