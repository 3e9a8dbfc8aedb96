"""Every experiment repeats under its seed, says what it found, and can be written; the command does both."""

import json
import xml.etree.ElementTree as ElementTree
from functools import cache
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ragclinic.cli.lab import lab
from ragclinic.errors import BadInput
from ragclinic.lab.experiment import Claim, Experiment, Plot
from ragclinic.lab.experiments import EXPERIMENTS, named_experiment
from ragclinic.lab.render import number, to_json, to_markdown, to_svg

FIVE = {"kv-growth", "loading", "pool-conflict", "quantization", "contention"}


def test_lab_experiments_the_five_are_listed_once() -> None:
    ids = [e.id for e in EXPERIMENTS]
    assert set(ids) >= FIVE
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda e: e.id)
def test_lab_experiments_repeat_under_their_seed_and_can_be_written(experiment: Experiment) -> None:
    one, other = experiment.run(3), experiment.run(3)
    assert one == other
    assert one.rows
    assert one.claims
    saved = json.loads(to_json(experiment, one, 3))
    assert saved["experiment"] == experiment.id
    assert len(saved["rows"]) == len(one.rows)
    assert all(c["why"] for c in saved["claims"])
    assert to_markdown(one.claims).count("\n") == len(one.claims) + 2
    for plot in one.plots:
        assert ElementTree.fromstring(to_svg(plot)).tag.endswith("svg")  # noqa: S314 (made by ourselves)


@cache
def modelled(experiment: str) -> dict[str, float]:
    return {c.what: c.modelled or 0.0 for c in named_experiment(experiment).run(0).claims}


def test_lab_experiments_the_pool_and_dynamic_batching_fight_and_a_shape_aware_pool_ends_it() -> None:
    claims = modelled("pool-conflict")
    assert claims["both: out of memory"] > 10
    assert claims["dynamic batching alone: out of memory"] == claims["pool alone: out of memory"] == 0
    for variant in ("both, buckets given back", "both, pages"):
        assert claims[f"{variant}: out of memory"] == 0
        assert claims[f"{variant}: of the first's throughput"] > 95


def test_lab_experiments_loading_by_layer_peaks_lower_and_leaves_a_larger_block() -> None:
    claims = modelled("loading")
    assert claims["peak, by layer against whole"] < -18.7
    assert claims["largest free block, by layer"] > claims["largest free block, whole"]
    assert claims["fragmentation, by layer"] < claims["fragmentation, whole"]


def test_lab_experiments_a_heavy_tenant_delays_the_others_until_there_is_a_quota_or_a_priority() -> None:
    claims = modelled("contention")
    beside = claims["first token, beside the heavy one"]
    assert beside > 10 * claims["first token, light tenants alone"]
    assert claims["first token, with a quota of half the cache"] < beside / 4
    assert claims["first token, with priority for the light"] < beside / 4


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda e: e.id)
def test_lab_experiments_the_documented_table_is_the_one_that_comes_out(experiment: Experiment) -> None:
    page = (Path(__file__).parents[2] / "docs" / "physics.md").read_text("utf-8")
    assert to_markdown(experiment.run(0).claims) in page


def test_lab_experiments_claims_are_judged_by_their_distance() -> None:
    assert Claim("a", "x", 10.0, 11.0, "").verdict == "held"
    assert Claim("a", "x", 10.0, 12.0, "").verdict == "refuted"
    assert Claim("a", "x", 0.0, 0.1, "").verdict == "refuted"
    assert Claim("a", "x", 10.0, 12.0, "", comparable=False).verdict == "not shown"
    assert Claim("a", "x", None, 1.0, "").verdict == Claim("a", "x", 1.0, None, "").verdict == "not shown"


def test_lab_experiments_numbers_are_short() -> None:
    assert [number(v, "GB") for v in (None, 0.0, 16.06, 536_870_912.0)] == [
        "-",
        "0 GB",
        "16.1 GB",
        "536,870,912 GB",
    ]


def test_lab_experiments_hostile_names_are_escaped_in_a_plot() -> None:
    plot = Plot("a", "<script>", "x", "y", {"<b>&": ((0.0, 0.0), (1.0, 1.0))})
    assert "<script>" not in to_svg(plot)


def test_lab_experiments_the_command_lists_and_runs(tmp_path: Path) -> None:
    listed = CliRunner().invoke(lab, ["list"])
    assert all(name in listed.stdout for name in FIVE)
    result = CliRunner().invoke(lab, ["run", "kv-growth", "--out", str(tmp_path / "out")])
    assert result.exit_code == 0
    assert "536,870,912" in result.stdout
    assert json.loads((tmp_path / "out" / "kv-growth.json").read_text())["claims"]
    assert (tmp_path / "out" / "kv-growth.svg").read_text().startswith("<svg")


def test_lab_experiments_an_unknown_name_is_answered_with_the_nearest() -> None:
    result = CliRunner().invoke(lab, ["run", "kv-grow"])
    assert isinstance(result.exception, BadInput)
    assert str(result.exception).startswith("experiment kv-grow: not known; the nearest is kv-growth; expected")
