"""What token counts alone tell of a session: whether the prefix cache keeps up as its prompts grow."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ragclinic.signals.seen import Request

MIN_TURNS = 3
CONSTANT = 0.02
"""Spread of the cached tokens over their largest, up to which they count as constant (an uncached last block)."""
GROWN = 1.2
"""Last prompt over first, from which on a session counts as grown."""


class Growth(NamedTuple):
    """Sessions whose prompts grow. `constant_share` (0..1) of them keep their cached tokens constant.

    The token counts are medians over those. `lost` has, by request id, the tokens that the session added before
    this request's previous turn: they stood in that prompt already and were computed again.
    """

    sessions: int
    constant_share: float
    cached_tokens: float
    first_tokens: float
    last_tokens: float
    lost: Mapping[str, float]


def growth(requests: Sequence[Request]) -> Growth | None:
    """How the cache keeps up with growing sessions, or None where no session of three turns grows."""
    by_session: dict[tuple[str | None, str], list[Request]] = {}
    for r in requests:
        if r.session is not None and r.prompt_tokens is not None and r.cached_tokens is not None:
            by_session.setdefault((r.tenant, r.session), []).append(r)
    grown = [turns for turns in by_session.values() if len(turns) >= MIN_TURNS and _grows(turns)]
    if not grown:
        return None
    constant = [turns for turns in grown if _constant(turns)]
    return Growth(
        sessions=len(grown),
        constant_share=len(constant) / len(grown),
        cached_tokens=_median([turns[-1].cached_tokens or 0 for turns in constant]),
        first_tokens=_median([turns[0].prompt_tokens or 0 for turns in constant]),
        last_tokens=_median([turns[-1].prompt_tokens or 0 for turns in constant]),
        lost={
            later.id: float(max(0, (earlier.prompt_tokens or 0) - (turns[0].prompt_tokens or 0)))
            for turns in constant
            for earlier, later in pairwise(turns[1:])
        },
    )


def _grows(turns: Sequence[Request]) -> bool:
    sizes = [t.prompt_tokens or 0 for t in turns]
    return sizes == sorted(sizes) and sizes[-1] >= GROWN * sizes[0]


def _constant(turns: Sequence[Request]) -> bool:
    """From the second turn on: what the first one finds cached is another session's."""
    cached = [t.cached_tokens or 0 for t in turns[1:]]
    return max(cached) - min(cached) <= CONSTANT * max(cached)


def _median(values: Sequence[float]) -> float:
    return float(np.median(values)) if values else 0.0
