"""Sentences that say nothing that another has not said.

A near duplicate shares most shingles with an earlier sentence *and* has no word of its own, so that sentences that
differ in a number, a name or a "not" are both kept, however alike they look. The second condition also makes them
quick to find without MinHash: whoever says all of a sentence holds its rarest word.
"""

from collections.abc import Mapping, Sequence

from ragclinic.context.prepared import Content
from ragclinic.context.redundancy import jaccard, shingles
from ragclinic.context.stop_terms import STOP_TERMS

NEAR = 0.8
"""Sentences at least this alike (Jaccard similarity of their shingles) can be near duplicates."""
MIN_TERMS = 5
"""Shorter sentences are compared as they are."""
MOST_COMPARED = 50
"""So many sentences at most are compared with one; only text made of the same few words has more."""


def twins(sentences: Sequence[Content]) -> list[int | None]:
    """Give for each sentence the earlier one that makes it needless, or None."""
    found: list[int | None] = []
    first: dict[str, int] = {}
    holders: dict[str, list[int]] = {}
    for number, sentence in enumerate(sentences):
        same = first.setdefault(sentence.text.casefold(), number)
        if same != number:
            twin = found[same]
            found.append(same if twin is None else twin)
            continue
        twin = _near(sentence, sentences, holders)
        found.append(twin)
        if twin is None:
            for term in sentence.terms:
                holders.setdefault(term, []).append(number)
    return found


def _near(sentence: Content, sentences: Sequence[Content], holders: Mapping[str, Sequence[int]]) -> int | None:
    """Give the first of the sentences held so far that is a near duplicate."""
    naming = [term for term in sentence.terms if term not in STOP_TERMS]
    if sentence.length < MIN_TERMS or not naming:
        return None
    fewest = min((holders.get(term, ()) for term in naming), key=len)
    for number in fewest[:MOST_COMPARED]:
        other = sentences[number]
        says_all = all(term in other.terms for term in naming)
        if says_all and jaccard(shingles(other.text), shingles(sentence.text)) >= NEAR:
            return number
    return None
