"""The few numbers under the headline, as finished text."""

from collections.abc import Sequence
from statistics import fmean
from typing import NamedTuple

from ragclinic.diagnosis.compare_types import Comparison
from ragclinic.report.numbers import count, duration, percent
from ragclinic.report.page import HeatPoint, Page
from ragclinic.report.text import Words


class Tile(NamedTuple):
    """A number, before and (where there is one) after."""

    label: str
    before: str
    after: str | None = None


class Gauge(NamedTuple):
    """A prediction's interval and the measured value, in percent of the width, beside their text."""

    predicted: str
    interval: str
    measured: str
    low: float
    width: float
    value: float
    dot: float
    held: bool


def tiles(page: Page, words: Words) -> list[Tile]:
    """What is known of: time to first token, total time, prompt size, evidence, the two axes."""
    return [*(_compared(page.comparison, words) if page.comparison else _alone(page, words)), *_axes(page, words)]


def gauge(comparison: Comparison) -> Gauge | None:
    """The predicted interval and the measured P95 on one scale from zero."""
    predicted, measured_ms = comparison.predicted, comparison.after.total_ms.p95
    if predicted is None:
        return None
    full_ms = 1.1 * max(predicted.high_ms, predicted.p95_ms, measured_ms) or 1.0
    return Gauge(
        predicted=duration(predicted.p95_ms),
        interval=f"{duration(predicted.low_ms)} – {duration(predicted.high_ms)}",
        measured=duration(measured_ms),
        low=100 * predicted.low_ms / full_ms,
        width=100 * (predicted.high_ms - predicted.low_ms) / full_ms,
        value=100 * predicted.p95_ms / full_ms,
        dot=100 * measured_ms / full_ms,
        held=bool(comparison.prediction_held),
    )


def _compared(comparison: Comparison, words: Words) -> list[Tile]:
    before, after = comparison.before, comparison.after
    found = []
    if before.ttft_ms and after.ttft_ms:
        found.append(Tile(words("tile.ttft"), duration(before.ttft_ms.p95), duration(after.ttft_ms.p95)))
    if before.prompt_tokens_mean is not None and after.prompt_tokens_mean is not None:
        found.append(Tile(words("tile.tokens"), count(before.prompt_tokens_mean), count(after.prompt_tokens_mean)))
    if before.evidence_kept is not None and after.evidence_kept is not None:
        found.append(Tile(words("tile.evidence"), percent(before.evidence_kept), percent(after.evidence_kept)))
    return found


def _alone(page: Page, words: Words) -> list[Tile]:
    latency = page.diagnosis.latency_ms
    if latency is None:
        return []
    return [Tile(words("tile.p50"), duration(latency.p50)), Tile(words("tile.p99"), duration(latency.p99))]


def _axes(page: Page, words: Words) -> list[Tile]:
    axes, after = page.diagnosis.axes, page.after.points if page.after else ()
    found = []
    if axes.memory_pressure is not None:
        found.append(Tile(words("tile.memory"), f"{axes.memory_pressure:.2f}", _mean(after, "memory")))
    if axes.context_redundancy is not None:
        found.append(Tile(words("tile.redundancy"), f"{axes.context_redundancy:.2f}", _mean(after, "redundancy")))
    return found


def _mean(points: Sequence[HeatPoint], axis: str) -> str | None:
    return f"{fmean(getattr(p, axis) for p in points):.2f}" if points else None
