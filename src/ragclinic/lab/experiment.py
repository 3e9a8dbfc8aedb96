"""What an experiment is and what it yields: rows, claims set beside the model, and plots."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

Verdict = Literal["held", "refuted", "not shown"]
Row = Mapping[str, str | float | int | bool | None]
"""One measurement or one modelled case, units in the names."""
HELD_WITHIN = 0.15
"""A claim holds where the model is within this share of it; the roofline's own error is no smaller."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A number that somebody claimed beside what the model says; `why` explains a difference.

    `claimed` is None where only a direction or nothing was claimed, `measured` where nothing was measured here.
    `comparable` is false where the claim names too little (no device, no definition) to be held or refuted.
    """

    what: str
    unit: str
    claimed: float | None
    modelled: float | None
    why: str
    measured: float | None = None
    comparable: bool = True

    @property
    def verdict(self) -> Verdict:
        """Whether the model agrees; `not shown` where there is nothing to compare."""
        if self.claimed is None or self.modelled is None or not self.comparable:
            return "not shown"
        allowed = HELD_WITHIN * abs(self.claimed)
        return "held" if abs(self.modelled - self.claimed) <= allowed else "refuted"


@dataclass(frozen=True, slots=True)
class Plot:
    """Lines over a common axis: name -> points in order of x."""

    id: str
    title: str
    x: str
    y: str
    lines: Mapping[str, tuple[tuple[float, float], ...]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """All that an experiment yields."""

    rows: tuple[Row, ...]
    claims: tuple[Claim, ...]
    plots: tuple[Plot, ...]


@dataclass(frozen=True, slots=True)
class Experiment:
    """One experiment. `refuted_by` says which result would refute what it is about; `run` takes a seed."""

    id: str
    question: str
    refuted_by: str
    run: Callable[[int], Outcome]
