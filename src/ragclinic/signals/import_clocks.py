"""Offsets between the clocks of several sources, from spans that must lie inside one another.

A server's span lies within its client's: its clock plus the offset must begin no earlier and end no later. Each
pair leaves an interval of offsets; where most leave no room for zero, the middle of the typical one is the offset,
as in NTP. Each service of each source is a clock of its own, since one collector gathers many machines.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

Clock = tuple[int, str]
"""A source's number and a service in it."""

MIN_OUTSIDE_SHARE = 0.5
"""Where half of the pairs fit as they are, the clocks agree, and the rest are children that outlive parents."""


class Link(NamedTuple):
    """Pairs of one clock's span (`outer`) around another's (`inner`), in nanoseconds.

    `outside_share` is the share of pairs that do not fit as they are, `offset_ns` the median middle of the
    intervals that would make them fit, `half_width_ns` the median half of their width.
    """

    outer: Clock
    inner: Clock
    pairs: int
    outside_share: float
    offset_ns: int
    half_width_ns: int


class Offset(NamedTuple):
    """What to add to a clock, how uncertain that is, and from how many pairs it was estimated (0: set by hand)."""

    add_ns: int
    uncertain_ns: int = 0
    pairs: int = 0


def offsets(links: Iterable[Link], roots: Mapping[Clock, int], fixed: Mapping[Clock, int]) -> dict[Clock, Offset]:
    """The offset of each clock that needs one, relative to the one with the most requests.

    `roots` counts the requests that began on each clock, `fixed` are offsets set by hand, which are taken as they
    are and carry over to nothing else.
    """
    usable = sorted(links, key=lambda link: -link.pairs)
    known = {clock: Offset(add_ns) for clock, add_ns in fixed.items()}
    waiting = sorted(roots, key=lambda clock: (-roots[clock], clock))
    for start in waiting:
        if start not in known:
            known[start] = Offset(0)
            _spread(start, usable, known)
    return {clock: offset for clock, offset in known.items() if offset.add_ns}


def _spread(start: Clock, links: Sequence[Link], known: dict[Clock, Offset]) -> None:
    """Follows links from a clock whose offset is known to all that are not."""
    reached = [start]
    while reached:
        here = reached.pop(0)
        for link in links:
            there, sign = (link.inner, 1) if link.outer == here else (link.outer, -1)
            if here not in (link.outer, link.inner) or there in known:
                continue
            estimate = link.offset_ns if link.outside_share > MIN_OUTSIDE_SHARE else 0
            known[there] = Offset(known[here].add_ns + sign * estimate, link.half_width_ns, link.pairs)
            reached.append(there)
