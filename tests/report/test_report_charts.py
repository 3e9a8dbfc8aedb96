"""The numbers behind the charts."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragclinic.diagnosis.types import StageShare
from ragclinic.report.bars import bars, slots, ticks
from ragclinic.report.charts import CDF_POINTS, cdf, chart_data, contours
from ragclinic.report.page import Page, RunView, Segment
from ragclinic.report.prompt_blocks import blocks
from ragclinic.report.text import Words
from ragclinic.report.tiles import gauge, tiles

times_ms = st.lists(st.floats(0.001, 1e6), min_size=1, max_size=400)


@given(times_ms, times_ms)
def test_curves_rise_from_the_first_to_the_last_sample(total: list[float], ttft: list[float]) -> None:
    """Each curve is nondecreasing, ends at 1 at its largest sample, and has no more points than pixels."""
    run = RunView(p95_ms=1.0, total_ms=total, ttft_ms=ttft)
    data: Any = cdf({"before": run}, 8_000.0, Words("en"))
    assert data["x"] == sorted(data["x"])
    assert len(data["x"]) <= 2 * CDF_POINTS
    for series, samples in zip(data["series"], (total, ttft), strict=True):
        known = [(x, y) for x, y in zip(data["x"], series["y"], strict=True) if y is not None]
        assert [y for _, y in known] == sorted(y for _, y in known)
        assert known[-1][1] == 1.0
        assert known[0][1] > 0
        assert known[-1][0] == pytest.approx(max(samples) / 1000, abs=1e-4)


def test_runs_far_apart_get_a_logarithmic_axis(page: Page) -> None:
    """35 s and 4 ms on one linear axis would be one line at the left."""
    before = RunView(1.0, total_ms=(30_000.0, 35_000.0))
    near: Any = cdf({"before": before}, 8_000.0, Words("en"))
    far: Any = cdf({"before": before, "after": RunView(1.0, total_ms=(40.0, 3_000.0))}, 8_000.0, Words("en"))
    assert (near["log"], far["log"]) == (False, True)


def test_no_samples_no_curves() -> None:
    """A diagnosis from a histogram has no samples."""
    assert cdf({"before": RunView(1.0)}, 8_000.0, Words("en")) is None


def test_contours_lie_where_the_formula_says(page: Page) -> None:
    """At each point of a contour the heat is the limit between two zones."""
    for limit, line in zip((30.0, 70.0), contours(page.plane), strict=True):
        assert len(line) > 30
        for memory, redundancy in line:
            w = max(0.3, 1 - 0.7 * redundancy)
            assert w * memory * 100 + (1 - w) * redundancy * 100 == pytest.approx(limit, abs=1e-6)


def test_bars_share_one_scale_and_sum_to_the_whole(page: Page) -> None:
    """The longest run fills the width, the other its part of it, stage by stage."""
    assert page.after is not None
    drawn = bars([("before", page.before), ("after", page.after)], slo_ms=8_000.0)
    widths = [sum(s.width for s in bar.stretches) for bar in drawn.bars]
    assert widths[0] == pytest.approx(100, abs=0.1)
    assert widths[1] == pytest.approx(100 * 3_815.6 / 34_899.7, abs=0.1)
    assert drawn.objective == pytest.approx(22.9, abs=0.1)
    assert bars([("after", page.after)], slo_ms=8_000.0).objective is None


def test_a_stage_of_one_run_only_is_still_a_row() -> None:
    """Loading the model vanishes from the treated run, the compiler appears in it; dead time stays last."""
    before = RunView(1.0, budget=(StageShare("load", 5.0, 0.5), StageShare("unaccounted", 5.0, 0.5)))
    after = RunView(1.0, budget=(StageShare("compile", 1.0, 1.0),))
    rows = bars([("before", before), ("after", after)], slo_ms=1.0).rows
    assert [(r.stage, r.cells[0] is None, r.cells[1] is None) for r in rows] == [
        ("load", False, True),
        ("compile", True, False),
        ("unaccounted", False, True),
    ]


def test_a_stage_has_one_colour_in_both_runs_and_dead_time_its_own() -> None:
    """Colours go by size; the ninth stage takes the first again."""
    many = tuple(StageShare(f"stage-{i}", 100.0 - i, 0.1) for i in range(9))
    runs = [RunView(1.0, budget=(*many, StageShare("unaccounted", 500.0, 0.1))), RunView(1.0, budget=many[::-1])]
    found = slots(runs)
    assert found["unaccounted"] == "rest"
    assert [found[f"stage-{i}"] for i in range(9)] == ["0", "1", "2", "3", "4", "5", "6", "7", "0"]


@given(st.floats(1e-3, 1e8))
def test_ticks_are_few_and_within_the_bar(full_ms: float) -> None:
    """From zero, at most seven marks, none outside."""
    marks = ticks(full_ms)
    assert marks[0] == 0
    assert 2 <= len(marks) <= 8
    assert marks[-1] <= full_ms * (1 + 1e-6)


segments = st.lists(
    st.builds(
        Segment,
        text=st.text(max_size=5),
        role=st.sampled_from(["system", "context", "question"]),
        kept=st.booleans(),
        why=st.sampled_from(["", "duplicate", "budget"]),
    )
)


@given(segments)
def test_a_prompt_in_blocks_is_the_same_prompt(parts: list[Segment]) -> None:
    """Joining neighbours loses no character and no fate."""
    found = blocks(parts)
    assert "".join(r.text for b in found for r in b.runs) == "".join(s.text for s in parts)
    assert all(a.role != b.role for a, b in pairwise(found))


def test_flame_frames_speak_the_language_and_keep_the_colour_of_their_bar(page: Page) -> None:
    """A stage's frame has the slot of its bar; other frames have none."""
    assert page.after is not None
    data: Any = chart_data(page, slots([page.before, page.after]), Words("zh"))
    queue, *_, generate, unaccounted = data["flame"]["before"]["children"]
    assert (queue["name"], generate["name"], generate["slot"]) == ("排队", "生成", None)
    assert queue["slot"] == slots([page.before, page.after])["queue"]
    assert unaccounted["slot"] == "rest"


def test_tiles_show_what_is_known(page: Page, page_alone: Page) -> None:
    """Both runs where there are two, percentiles where there is one, nothing invented."""
    words = Words("en")
    assert [t.label for t in tiles(page, words)][:2] == ["First token, P95", "Prompt tokens, mean"]
    assert [(t.label, t.after) for t in tiles(page_alone, words)][:2] == [
        ("Total, P50", None),
        ("Total, P99", None),
    ]
    bare = replace(
        page_alone, diagnosis=replace(page.diagnosis, latency_ms=None, axes=type(page.diagnosis.axes)())
    )
    assert tiles(bare, words) == []


def test_gauge_places_prediction_and_measurement_on_one_scale(page: Page) -> None:
    """The measured dot lies inside the band exactly when the interval held."""
    assert page.comparison is not None
    found = gauge(page.comparison)
    assert found is not None
    assert found.low < found.dot < found.low + found.width
    assert gauge(replace(page.comparison, predicted=None)) is None
