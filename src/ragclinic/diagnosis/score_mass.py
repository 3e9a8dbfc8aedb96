"""How much of the retriever's belief the first chunks hold: the share of the scores, above what it gives anything.

Reranker probabilities fall to nothing, and their plain share tells. Cosines do not: six chunks between 0.55 and
0.65 have a third of the sum in the first two whatever they hold. There the score that this service's *last* chunks
typically get is taken off first: that is what a chunk scores for being a chunk.
"""

from collections.abc import Sequence

import numpy as np

from ragclinic.signals.seen import Request

FIRST = 2
MIN_CHUNKS = 4
"""Of three chunks the first two hold most of anything."""
NEAR_ZERO = 0.2
"""A floor below this share of the typical best score is taken for nothing: scores fall to zero by themselves."""


def floor_score(requests: Sequence[Request]) -> float:
    """What an irrelevant chunk scores here: the median of the last ranks' scores, or 0 where that is near 0."""
    told = [scores for r in requests if (scores := _scores(r)) is not None and len(scores) >= MIN_CHUNKS]
    if not told:
        return 0.0
    floor = float(np.median([s[-1] for s in told]))
    best = float(np.median([s[0] for s in told]))
    return 0.0 if abs(floor) < NEAR_ZERO * abs(best) else floor


def mass_of_first(request: Request, floor: float) -> float | None:
    """Share (0..1) of the score above the floor that the first two chunks hold.

    None with fewer than four chunks, or where scores are unknown or all at the floor.
    """
    scores = _scores(request)
    if scores is None or len(scores) < MIN_CHUNKS:
        return None
    above = [max(0.0, s - floor) for s in scores]
    total = sum(above)
    return sum(above[:FIRST]) / total if total > 0 else None


def _scores(request: Request) -> list[float] | None:
    """Scores in rank order, higher better; distances, which grow with the rank, are turned round."""
    scores = [c.score for c in sorted(request.chunks, key=lambda c: c.rank)]
    known = [s for s in scores if s is not None]
    if not known or len(known) < len(scores):
        return None
    return [-s for s in known] if known[0] < known[-1] else known
