"""How many tokens of a prompt's context were read before in the same prompt, and why: a chunk's overlap with its
neighbour in the document, or another chunk that says the same.

The two are told apart so that one fault is never named twice: what neighbours repeat is `overlap-waste`, the rest
`context-redundant`.
"""

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

from ragclinic.context.overlaps import border
from ragclinic.context.redundancy import Shingles, jaccard
from ragclinic.diagnosis.pieces import Piece, pieces
from ragclinic.signals.seen import Request

WHOLE_SHARE = 0.9
"""An overlap above this share of a chunk is a second copy of it, not a border."""
REPEATED_SHARE = 0.3
"""A chunk repeats another where it holds this share of its shingles: unrelated chunks of 500 tokens share 0.05."""


class Repetition(NamedTuple):
    """What one prompt repeats, in tokens; `redundancy` is the axis: mean pairwise Jaccard, 0..1.

    `redundancy_apart` leaves out the pairs that overlap as neighbours. `neighbour_tokens` is None where it cannot
    be told which chunks are neighbours.
    """

    context_tokens: float
    neighbour_tokens: float | None
    duplicate_tokens: float
    redundancy: float
    redundancy_apart: float


def repetition(request: Request) -> Repetition | None:
    """What the request's context repeats, or None where its chunks, their shingles or their tokens are unknown."""
    found = pieces(request)
    keys = [p.keys for p in found if p.keys is not None]
    tokens = [p.tokens for p in found if p.tokens is not None]
    if len(found) < 2 or len(keys) < len(found) or len(tokens) < len(found):
        return None
    neighbours = neighbour_overlaps(found)
    shared = set() if neighbours is None else {frozenset(pair) for pair in neighbours}
    alike = {frozenset((i, j)): jaccard(keys[i], keys[j]) for i, j in combinations(range(len(found)), 2)}
    return Repetition(
        context_tokens=sum(tokens),
        neighbour_tokens=None if neighbours is None else _repeated(neighbours, tokens),
        duplicate_tokens=_duplicates(keys, tokens, shared),
        redundancy=_mean(list(alike.values())),
        redundancy_apart=_mean([value for pair, value in alike.items() if pair not in shared]),
    )


def neighbour_overlaps(found: Sequence[Piece]) -> dict[tuple[int, int], float] | None:
    """Pairs (earlier in the document, later) of pieces with the share of the later that the earlier holds too.

    By offsets where both have them, by their common border where both have text; None where no pair has either.
    """
    overlaps: dict[tuple[int, int], float] = {}
    told = False
    for i, j in combinations(range(len(found)), 2):
        pair = _by_offsets(found, i, j) or _by_text(found, i, j)
        if pair is None:
            continue
        told = True
        first, second, share = pair
        if 0 < share < WHOLE_SHARE:
            overlaps[first, second] = share
    return overlaps if told else None


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _by_offsets(found: Sequence[Piece], i: int, j: int) -> tuple[int, int, float] | None:
    one, other = found[i].chunk, found[j].chunk
    if one is None or other is None or not (found[i].placed and found[j].placed):
        return None
    if one.doc != other.doc:
        return i, j, 0.0
    (first, a), (second, b) = sorted([(i, one), (j, other)], key=lambda pair: (pair[1].start or 0, pair[0]))
    length = (b.end or 0) - (b.start or 0)
    common = min(a.end or 0, b.end or 0) - (b.start or 0)
    return first, second, max(0.0, common / length) if length > 0 else 0.0


def _by_text(found: Sequence[Piece], i: int, j: int) -> tuple[int, int, float] | None:
    one, other = found[i].chunk, found[j].chunk
    if one is None or other is None or not one.text or not other.text:
        return None
    forward, backward = border(one.text, other.text), border(other.text, one.text)
    if forward >= backward:
        return i, j, forward / len(other.text)
    return j, i, backward / len(one.text)


def _repeated(neighbours: dict[tuple[int, int], float], tokens: Sequence[float]) -> float:
    """Tokens that neighbours repeat: of each piece the largest part that one before it holds."""
    largest: dict[int, float] = {}
    for (_, second), share in neighbours.items():
        largest[second] = max(largest.get(second, 0.0), share)
    return sum(tokens[i] * share for i, share in largest.items())


def _duplicates(keys: Sequence[Shingles], tokens: Sequence[float], neighbours: set[frozenset[int]]) -> float:
    """Tokens of pieces that a better-ranked piece says already, pairs of overlapping neighbours left out."""
    total = 0.0
    for later in range(1, len(keys)):
        held = max(
            (len(keys[later] & keys[i]) for i in range(later) if frozenset((i, later)) not in neighbours),
            default=0,
        )
        share = held / len(keys[later]) if keys[later] else 0.0
        total += tokens[later] * share if share >= REPEATED_SHARE else 0.0
    return total
