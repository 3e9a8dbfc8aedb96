"""A prompt's segments in blocks of one role, as the page shows them."""

from collections.abc import Iterable
from itertools import groupby
from typing import NamedTuple

from ragclinic.report.page import Segment


class Run(NamedTuple):
    """Neighbouring segments with one fate, as one text."""

    text: str
    kept: bool
    why: str


class Block(NamedTuple):
    """Neighbouring segments of one role."""

    role: str
    runs: tuple[Run, ...]


def blocks(segments: Iterable[Segment]) -> list[Block]:
    """The segments in order, neighbours joined; nothing is left out."""
    return [
        Block(
            role,
            tuple(
                Run("".join(s.text for s in same), kept, why)
                for (kept, why), same in groupby(group, key=lambda s: (s.kept, s.why))
            ),
        )
        for role, group in groupby(segments, key=lambda s: s.role)
    ]
