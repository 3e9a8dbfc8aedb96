"""Where passages of one document repeat each other's text because its chunks were cut with an overlap.

Offsets are believed only where the texts agree; otherwise, and where there are none, the longest common border is
taken: the longest end of one passage that begins the other.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise
from typing import NamedTuple

from ragclinic.context.passages import Passage
from ragclinic.context.tokens import CountTokens

MIN_CHARS = 12
"""A shorter border is chance."""
ALL_PAIRS = 64
"""Up to this many passages every two are compared; above, only those next to each other."""
_TRIES = 32


class Overlap(NamedTuple):
    """Passage `second` begins at character `at` of passage `first`, and for `chars` characters they agree."""

    first: int
    second: int
    at: int
    chars: int


def overlaps(passages: Sequence[Passage]) -> list[Overlap]:
    """Give the overlaps among passages, at most one for each two; the second never lies before the first."""
    placed = [i for i, p in enumerate(passages) if p.doc is not None and p.start is not None]
    found = list(_by_offsets(passages, placed))
    decided = set(placed)
    for one, other in _candidates(len(passages)):
        docs = {passages[one].doc, passages[other].doc}
        if (one in decided and other in decided) or (len(docs) == 2 and None not in docs):
            continue
        overlap = _by_border(passages, one, other)
        if overlap:
            found.append(overlap)
    return found


def overlap_tokens(passages: Sequence[Passage], count: CountTokens) -> int:
    """Give the tokens that the passages repeat of one another by overlap; each passage's start counts once."""
    repeated: dict[int, int] = {}
    for overlap in overlaps(passages):
        repeated[overlap.second] = max(repeated.get(overlap.second, 0), overlap.chars)
    return sum(count(passages[second].text[:chars]) for second, chars in repeated.items())


def border(one: str, other: str) -> int:
    """Give the length of the longest end of `one` that begins `other`; takes time linear in both."""
    longest = min(len(one), len(other))
    tail, head = one[len(one) - longest :], other[:longest]
    at = tail.find(head[:MIN_CHARS])
    for _ in range(_TRIES):
        if at < 0 or longest - at < MIN_CHARS:
            return 0
        if tail.startswith(head[: longest - at], at):
            return longest - at
        at = tail.find(head[:MIN_CHARS], at + 1)
    # Text that repeats itself would make each further try as long as the text.
    length = _prefix_function(head, tail)
    return length if length >= MIN_CHARS else 0


def _prefix_function(head: str, tail: str) -> int:
    """Give the longest beginning of `head` that ends `tail` (Knuth, Morris and Pratt)."""
    back = [0] * len(head)
    length = 0
    for at in range(1, len(head)):
        while length and head[at] != head[length]:
            length = back[length - 1]
        length += head[at] == head[length]
        back[at] = length
    length = 0
    for char in tail:
        while length and (length == len(head) or char != head[length]):
            length = back[length - 1]
        length += char == head[length]
    return length


def _by_offsets(passages: Sequence[Passage], placed: Sequence[int]) -> Iterator[Overlap]:
    """Compare each passage with the one of its document that reaches furthest among those that begin before."""
    reaching: int | None = None
    for second in sorted(placed, key=lambda i: (str(passages[i].doc), passages[i].start or 0, i)):
        if reaching is not None and passages[reaching].doc == passages[second].doc:
            at = (passages[second].start or 0) - (passages[reaching].start or 0)
            chars = min(len(passages[reaching].text) - at, len(passages[second].text))
            if chars > 0 and passages[reaching].text.startswith(passages[second].text[:chars], at):
                yield Overlap(reaching, second, at, chars)
            elif overlap := _by_border(passages, reaching, second):
                yield overlap
        if (
            reaching is None
            or passages[reaching].doc != passages[second].doc
            or _end(passages[second]) > _end(passages[reaching])
        ):
            reaching = second


def _end(passage: Passage) -> int:
    """Give where a passage ends in its document, by its start and its text."""
    return (passage.start or 0) + len(passage.text)


def _candidates(count: int) -> Iterator[tuple[int, int]]:
    """Give the pairs worth comparing: all of a few passages, neighbours of many."""
    return combinations(range(count), 2) if count <= ALL_PAIRS else pairwise(range(count))


def _by_border(passages: Sequence[Passage], one: int, other: int) -> Overlap | None:
    """Give the overlap of two passages as their texts show it, whichever comes first."""
    left, right = passages[one].text, passages[other].text
    if len(right) >= MIN_CHARS and (at := left.find(right)) >= 0:
        return Overlap(one, other, at, len(right))
    if len(left) >= MIN_CHARS and (at := right.find(left)) >= 0:
        return Overlap(other, one, at, len(left))
    forward, backward = border(left, right), border(right, left)
    if not forward and not backward:
        return None
    if forward >= backward:
        return Overlap(one, other, len(left) - forward, forward)
    return Overlap(other, one, len(right) - backward, backward)
