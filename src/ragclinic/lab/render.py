"""An outcome as JSON, as a Markdown table and as SVG."""

import json
import platform
from collections.abc import Sequence
from itertools import cycle

from ragclinic import __version__
from ragclinic.lab.experiment import Claim, Experiment, Outcome, Plot

WIDTH, HEIGHT = 800, 500
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#000000")
"""Told apart by people who see few colours (Okabe and Ito, 2008)."""


def to_json(experiment: Experiment, outcome: Outcome, seed: int) -> str:
    """All rows and claims, with what is needed to make them again."""
    whole = {
        "experiment": experiment.id,
        "question": experiment.question,
        "refuted_by": experiment.refuted_by,
        "seed": seed,
        "ragclinic": __version__,
        "python": platform.python_version(),
        "claims": [
            {
                "what": c.what,
                "unit": c.unit,
                "claimed": c.claimed,
                "modelled": c.modelled,
                "measured": c.measured,
                "verdict": c.verdict,
                "why": c.why,
            }
            for c in outcome.claims
        ],
        "rows": outcome.rows,
    }
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def to_markdown(claims: Sequence[Claim]) -> str:
    """Claimed beside modelled beside measured."""
    lines = ["| what | claimed | modelled | measured | | why |", "| --- | ---: | ---: | ---: | --- | --- |"]
    lines += [
        f"| {c.what} | {number(c.claimed, c.unit)} | {number(c.modelled, c.unit)} | {number(c.measured, c.unit)} "
        f"| {c.verdict} | {c.why} |"
        for c in claims
    ]
    return "\n".join(lines) + "\n"


def number(value: float | None, unit: str) -> str:
    """A number of a claim with its unit, three digits or all where it is whole and large; a dash for none."""
    if value is None:
        return "-"
    text = f"{value:,.0f}" if abs(value) >= 1000 or value == round(value) else f"{value:.3g}"
    return f"{text} {unit}"


def to_svg(plot: Plot) -> str:
    """The plot drawn by `leather`: pure Python, no dependencies, SVG that every browser shows."""
    import leather  # only a plot needs it

    chart = leather.Chart(plot.title)
    for (name, points), colour in zip(plot.lines.items(), cycle(COLOURS), strict=False):
        chart.add_line(list(points), name=name, stroke_color=colour)
    chart.add_x_axis(name=plot.x)
    chart.add_y_axis(name=plot.y)
    return str(chart.to_svg(width=WIDTH, height=HEIGHT))
