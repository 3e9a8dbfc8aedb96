"""What the scripts of the page draw, as plain JSON: all is computed here, the scripts only draw."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import pairwise

from ragclinic.diagnosis.heatmap import COUPLED_UP_TO, IDEAL_UP_TO
from ragclinic.report.json_ import Json, plain
from ragclinic.report.numbers import duration
from ragclinic.report.page import FlameNode, HeatPoint, Page, RunView
from ragclinic.report.text import Words, visible

CDF_POINTS = 200
"""Steps of a curve at most: more than pixels can tell, so that 100,000 requests weigh no more than 200."""

LOG_FROM = 8.0
"""Samples that differ by more than this factor are drawn on a logarithmic axis."""


TEXT_KEYS = (
    "heat.memory",
    "heat.redundancy",
    "heat.heat",
    "heat.ideal",
    "heat.coupled",
    "heat.contended",
    "latency.axis_x",
    "latency.axis_y",
    "page.before",
    "page.after",
)
"""The words that the scripts draw."""


def chart_data(page: Page, slots: Mapping[str, str], words: Words) -> dict[str, Json]:
    """The data block of the page."""
    runs = {"before": page.before} | ({"after": page.after} if page.after else {})
    text: dict[str, Json] = {key: words(key) for key in TEXT_KEYS}
    text["page.objective"] = words("page.objective", slo=duration(page.diagnosis.slo_ms))
    return {
        "heat": _heat(page, runs) if page.plane else None,
        "cdf": cdf(runs, page.diagnosis.slo_ms, words),
        "flame": {name: flame(run.flame, slots, words) for name, run in runs.items() if run.flame},
        "text": text,
    }


def cdf(runs: Mapping[str, RunView], slo_ms: float, words: Words) -> Json:
    """The share of requests done within each time, for every measure of every run, on one axis of seconds."""
    curves = {
        (run, measure): sorted(samples)
        for run, view in runs.items()
        for measure, samples in (("total", view.total_ms), ("ttft", view.ttft_ms))
        if samples
    }
    if not curves:
        return None
    steps = {key: [samples[i] for i in _spread(len(samples))] for key, samples in curves.items()}
    xs = sorted({x for step in steps.values() for x in step})
    series: list[Json] = []
    for (run, measure), samples in curves.items():
        label = (
            words("comma").join((words(f"compare.{measure}"), words(f"page.{run}")))
            if len(runs) > 1
            else words(f"compare.{measure}")
        )
        series.append({"label": label, "run": run, "measure": measure, "y": plain(_shares(samples, xs))})
    smallest = max(min(xs), 1e-3)
    return {
        "x": plain([x / 1000 for x in xs]),
        "series": series,
        "slo_s": plain(slo_ms / 1000),
        "log": max(xs) / smallest > LOG_FROM,
    }


def contours(plane: Sequence[Sequence[float]]) -> list[list[tuple[float, float]]]:
    """For each limit between zones, the points (memory, redundancy) where the plane crosses it."""
    return [
        [p for row, heats in enumerate(plane) for p in _crossing(heats, limit, row / (len(plane) - 1))]
        for limit in (IDEAL_UP_TO, COUPLED_UP_TO)
    ]


def flame(node: FlameNode, slots: Mapping[str, str], words: Words) -> Json:
    """The frames with their names in the page's language; a stage has its colour from the bars."""
    name = visible(node.name)
    return {
        "name": words.name("stage", words.name("role", name)),
        "value": plain(node.value_ms),
        "slot": slots.get(node.name),
        "children": [flame(child, slots, words) for child in node.children],
    }


def _heat(page: Page, runs: Mapping[str, RunView]) -> Json:
    return {
        "plane": [[round(heat, 1) for heat in row] for row in page.plane],
        "contours": plain(contours(page.plane)),
        "points": {name: [_point(p) for p in run.points] for name, run in runs.items()},
    }


def _point(point: HeatPoint) -> Json:
    return [plain(point.memory), plain(point.redundancy), plain(point.seconds)]


def _crossing(heats: Sequence[float], limit: float, redundancy: float) -> list[tuple[float, float]]:
    for i, (low, high) in enumerate(pairwise(heats)):
        if low <= limit < high:
            memory = (i + (limit - low) / (high - low)) / (len(heats) - 1)
            return [(memory, redundancy)]
    return []


def _spread(size: int) -> list[int]:
    """Indices over a sorted sample, first and last included, at most `CDF_POINTS`."""
    if size <= CDF_POINTS:
        return list(range(size))
    return sorted({round(i * (size - 1) / (CDF_POINTS - 1)) for i in range(CDF_POINTS)})


def _shares(samples: Sequence[float], xs: Sequence[float]) -> list[float | None]:
    """The share done at each x, None outside the sample: there the curve says nothing more."""
    return [bisect_right(samples, x) / len(samples) if samples[0] <= x <= samples[-1] else None for x in xs]
