"""Which chunks an answer used: a heuristic, said as one.

Walking down the ranks, a chunk counts as used where it adds enough of the answer's content words that neither the
question nor a better-ranked chunk holds. A second copy is thus unused, and so is a chunk that merely shares the
question's topic. What it cannot see: a chunk that made the model *not* say something, and words of an answer that
the model knew by itself. An answer without words of its own ("yes") tells nothing: None.
"""

from collections.abc import Sequence

from ragclinic.context.stop_terms import STOP_TERMS
from ragclinic.context.words import terms

USED_SHARE = 0.15
"""Share of the answer's own words that a chunk must add to count as used."""
MIN_ADDED = 2
"""Words that it must add at least: one may be chance."""


def used(answer: str | None, question: str | None, texts: Sequence[str | None]) -> tuple[bool, ...] | None:
    """For each chunk, in rank order, whether the answer used it; None where that cannot be told."""
    if answer is None or any(text is None for text in texts):
        return None
    own = _content(answer) - _content(question or "")
    if len(own) < MIN_ADDED:
        return None
    found: list[bool] = []
    open_words = set(own)
    for text in texts:
        added = open_words & _content(text or "")
        found.append(len(added) >= max(MIN_ADDED, USED_SHARE * len(own)))
        open_words -= added
    return tuple(found)


def _content(text: str) -> set[str]:
    return {term for term in terms(text) if term not in STOP_TERMS}
