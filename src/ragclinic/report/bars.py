"""The budget bars of one or two runs on one time scale: where each stretch lies, in percent of the width."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ragclinic.diagnosis.types import StageShare
from ragclinic.report.page import RunView

UNACCOUNTED = "unaccounted"
SLOTS = 8
"""Colours there are for stages; the ninth stage takes the first colour again."""

REST_SLOT = "rest"
LABEL_SHARE = 0.09
"""A stretch narrower than this share of the width has no room for its name."""


class Stretch(NamedTuple):
    """One stage of one bar."""

    stage: str
    slot: str
    ms: float
    share: float
    width: float
    labelled: bool


class Bar(NamedTuple):
    """One run's stages from left to right."""

    run: str
    p95_ms: float
    stretches: tuple[Stretch, ...]


class Tick(NamedTuple):
    """A mark of the time axis."""

    label: str
    left: float


class StageRow(NamedTuple):
    """One stage in all runs; a run that did not have it has None."""

    stage: str
    slot: str
    cells: tuple[StageShare | None, ...]


class Bars(NamedTuple):
    """All bars, their numbers, the axis below them and the place of the objective (None where it lies outside)."""

    bars: tuple[Bar, ...]
    rows: tuple[StageRow, ...]
    ticks: tuple[Tick, ...]
    objective: float | None


def slots(runs: Iterable[RunView]) -> dict[str, str]:
    """A colour for each stage, the longest first, the same in every chart of the page; dead time has its own."""
    longest: dict[str, float] = {}
    for run in runs:
        for stage in run.budget:
            longest[stage.stage] = max(stage.p95_ms, longest.get(stage.stage, 0.0))
    named = sorted((s for s in longest if s != UNACCOUNTED), key=lambda s: (-longest[s], s))
    return {stage: str(i % SLOTS) for i, stage in enumerate(named)} | {UNACCOUNTED: REST_SLOT}


def bars(runs: Sequence[tuple[str, RunView]], slo_ms: float) -> Bars:
    """The bars of the named runs; the longest fills the width."""
    full_ms = max((run.p95_ms for _, run in runs), default=0.0) or 1.0
    colours = slots(run for _, run in runs)
    drawn = tuple(
        Bar(
            name,
            run.p95_ms,
            tuple(
                Stretch(
                    stage=s.stage,
                    slot=colours[s.stage],
                    ms=s.p95_ms,
                    share=s.share,
                    width=100 * s.p95_ms / full_ms,
                    labelled=s.p95_ms / full_ms >= LABEL_SHARE,
                )
                for s in run.budget
            ),
        )
        for name, run in runs
    )
    marks = tuple(Tick(f"{ms / 1000:g} s" if ms else "0", 100 * ms / full_ms) for ms in ticks(full_ms))
    return Bars(
        drawn,
        stage_rows([run for _, run in runs], colours),
        marks,
        100 * slo_ms / full_ms if slo_ms <= full_ms else None,
    )


def stage_rows(runs: Sequence[RunView], colours: Mapping[str, str]) -> tuple[StageRow, ...]:
    """The stages in the order in which they happen, dead time last."""
    stages = dict.fromkeys(s.stage for run in runs for s in run.budget)
    ordered = sorted(stages, key=lambda stage: stage == UNACCOUNTED)
    found = [{s.stage: s for s in run.budget} for run in runs]
    return tuple(StageRow(stage, colours[stage], tuple(run.get(stage) for run in found)) for stage in ordered)


def ticks(full_ms: float, most: int = 6) -> list[float]:
    """Round times from 0 up to `full_ms`, at most so many steps of 1, 2 or 5.

    >>> ticks(34_900)
    [0.0, 10000.0, 20000.0, 30000.0]
    """
    rough = full_ms / most
    magnitude = 10.0 ** math.floor(math.log10(rough))
    step = next(magnitude * m for m in (1, 2, 5, 10) if magnitude * m >= rough)
    return [i * step for i in range(int(full_ms / step + 1e-9) + 1)]
