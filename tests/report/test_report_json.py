"""JSON in the published form."""

import json
import math
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import jsonschema
import pytest

from ragclinic.diagnosis.compare_types import Comparison
from ragclinic.diagnosis.types import Diagnosis, Interval, Remedy
from ragclinic.report.json_ import SchemaName, comparison_json, demo_json, diagnosis_json, dumps, plain, schema


def validate(value: object, name: SchemaName) -> None:
    jsonschema.Draft202012Validator(schema(name)).validate(value)


@pytest.mark.parametrize("name", ["diagnosis", "comparison", "demo"])
def test_schemas_are_schemas(name: SchemaName) -> None:
    """Each shipped schema is itself valid."""
    jsonschema.Draft202012Validator.check_schema(schema(name))


def test_a_diagnosis_fits_its_schema_and_keeps_the_order_of_the_design(diagnosis: Diagnosis) -> None:
    """The names and their order are those of the design's example."""
    value = diagnosis_json(diagnosis)
    validate(value, "diagnosis")
    assert list(value) == [
        "verdict", "slo_ms", "requests", "latency_ms", "budget", "axes", "findings", "missing_signals", "notes",
    ]  # fmt: skip
    assert value["axes"] == {"memory_pressure": 0.62, "context_redundancy": 0.41}


def test_an_unknown_diagnosis_fits_its_schema(diagnosis: Diagnosis) -> None:
    """Nothing found and nothing timed is a valid answer."""
    unknown = replace(diagnosis, verdict="unknown", latency_ms=None, budget=(), findings=(), requests=2)
    validate(diagnosis_json(unknown), "diagnosis")
    assert diagnosis_json(unknown)["latency_ms"] is None


def test_bounds_are_a_pair(diagnosis: Diagnosis) -> None:
    """P95 from histogram buckets carries [low, high]."""
    assert diagnosis.latency_ms is not None
    bucketed = replace(diagnosis, latency_ms=replace(diagnosis.latency_ms, bounds=(5_000.0, 10_000.0)))
    value: Any = diagnosis_json(bucketed)
    validate(value, "diagnosis")
    assert value["latency_ms"]["bounds"] == [5000.0, 10000.0]


@pytest.mark.parametrize(
    "change",
    [
        {"verdict": "tired"},
        {"slo_ms": 0},
        {"budget": [{"stage": "prefill", "p95_ms": 1, "share": 1.5}]},
        {"findings": [{"cause": "Not An Id"}]},
        {"extra": 1},
        {"latency_ms": {"p50": 1, "p95": 2}},
    ],
)
def test_the_schema_refuses_what_is_wrong(diagnosis: Diagnosis, change: dict[str, object]) -> None:
    """A schema that accepts everything would hold nothing."""
    with pytest.raises(jsonschema.ValidationError):
        validate({**diagnosis_json(diagnosis), **change}, "diagnosis")


def test_a_comparison_fits_its_schema(comparison: Comparison) -> None:
    """With all it may have, and with none of it."""
    validate(comparison_json(comparison), "comparison")
    bare = replace(comparison, speedup_ttft_p95=None, predicted=None, answers=None)
    validate(comparison_json(bare), "comparison")


def test_runs_without_common_questions_have_no_speedup(comparison: Comparison, diagnosis: Diagnosis) -> None:
    """Infinity is no JSON; unknown is null."""
    nothing = replace(comparison, questions=0, verdict="not-shown", speedup_total_p95=Interval(1.0, 0.0, math.inf))
    for value in (comparison_json(nothing), demo_json(nothing, ())):
        assert value["speedup_total_p95"] is None
    validate(comparison_json(nothing), "comparison")
    validate(demo_json(nothing, ()), "demo")


def test_demo_holds_what_was_promised(comparison: Comparison, diagnosis: Diagnosis) -> None:
    """The keys that a person or a check reads first."""
    value: Any = demo_json(comparison, diagnosis.findings)
    validate(value, "demo")
    assert value["as_found"]["ttft_ms"]["p95"] == 34_880.0
    assert value["treated"]["total_ms"] == {"p50": 2_110.0, "p95": 3_815.6, "p99": 4_102.0}
    assert value["treated"]["prompt_tokens_mean"] == 521.8
    assert value["speedup_ttft_p95"] == 13.137
    assert value["evidence_kept"] == {"as_found": 0.95, "treated": 0.95}
    assert value["findings"] == ["prefix-unstable", "context-overfull", "overlap-waste", "answer-recomputed"]
    assert value["predicted_p95_ms"] == 3_610.0
    assert value["questions"] == 40


def test_demo_of_runs_that_know_little_is_null_not_zero(comparison: Comparison) -> None:
    """Unknown stays unknown."""
    before = replace(comparison.before, ttft_ms=None, evidence_kept=None)
    bare = replace(comparison, before=before, speedup_ttft_p95=None, predicted=None)
    value: Any = demo_json(bare, ())
    validate(value, "demo")
    assert value["speedup_ttft_p95"] is None
    assert value["predicted_p95_ms"] is None
    assert value["evidence_kept"]["as_found"] is None


def test_the_text_reads_back_and_keeps_chinese(diagnosis: Diagnosis) -> None:
    """Chinese is not escaped, and any mapping serves as settings."""
    remedy = Remedy(MappingProxyType({"retrieval.top_k": 4}), "少取几块")
    changed = replace(diagnosis, findings=(replace(diagnosis.findings[0], remedy=remedy),))
    text = dumps(diagnosis_json(changed))
    assert "少取几块" in text
    assert json.loads(text)["findings"][0]["remedy"]["settings"] == {"retrieval.top_k": 4}


def test_numbers_that_are_none_are_refused() -> None:
    """NaN in a report is a bug of ours, and the file would not be JSON."""
    for value in (math.nan, math.inf):
        with pytest.raises(ValueError, match="a report cannot hold"):
            plain({"a": [value]})
    with pytest.raises(TypeError, match="no JSON for object"):
        plain(object())


def test_a_lone_surrogate_does_not_stop_the_report() -> None:
    """A broken byte in a document must not cost the diagnosis."""
    dumps(plain(["\ud800"])).encode("utf-8")


def test_named_tuples_are_objects() -> None:
    """An interval is written by its names."""
    assert plain(Interval(2.0, 1.0, 3.0)) == {"value": 2.0, "low": 1.0, "high": 3.0}
