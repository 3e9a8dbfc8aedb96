"""Diagnosis and comparison as JSON, in the published forms that `schema/*.schema.json` describe.

Names are the field names of the dataclasses; an unknown number is null, and a number that is no number is a bug
of ours that must not reach a file, so it raises.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from importlib import resources
from typing import Literal, cast

from ragclinic.diagnosis.compare_types import Comparison, RunSummary
from ragclinic.diagnosis.types import Diagnosis, Finding

SchemaName = Literal["diagnosis", "comparison", "demo"]
Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]

DECIMALS = 4
"""A ten-thousandth of a ms, or of a share: below what any clock or count here can tell."""


def diagnosis_json(diagnosis: Diagnosis) -> dict[str, Json]:
    """What `ragclinic diagnose --json` prints."""
    return _object(diagnosis)


def comparison_json(comparison: Comparison) -> dict[str, Json]:
    """What `ragclinic verify --json` prints."""
    values = {f.name: getattr(comparison, f.name) for f in fields(comparison)}
    values["speedup_total_p95"] = comparison.known_speedup
    return {name: plain(value) for name, value in values.items()}


def demo_json(comparison: Comparison, findings: Sequence[Finding]) -> dict[str, Json]:
    """What `demo.json` holds; `findings` are those of the as-found run."""
    before, after = comparison.before, comparison.after
    predicted, total, ttft = comparison.predicted, comparison.known_speedup, comparison.speedup_ttft_p95
    return {
        "as_found": _run(before),
        "treated": _run(after),
        "speedup_ttft_p95": None if ttft is None else plain(ttft.value),
        "speedup_total_p95": None if total is None else plain(total.value),
        "evidence_kept": {"as_found": plain(before.evidence_kept), "treated": plain(after.evidence_kept)},
        "findings": [finding.cause for finding in findings],
        "predicted_p95_ms": None if predicted is None else plain(predicted.p95_ms),
        "predicted_p95_low_ms": None if predicted is None else plain(predicted.low_ms),
        "predicted_p95_high_ms": None if predicted is None else plain(predicted.high_ms),
        "questions": comparison.questions,
        "verdict": comparison.verdict,
    }


def dumps(value: Json) -> str:
    """The text of a JSON file, as a person would lay it out."""
    return json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def schema(name: SchemaName) -> dict[str, Json]:
    """The JSON Schema of this name, as shipped in the package."""
    text = resources.files("ragclinic.report").joinpath("schema", f"{name}.schema.json").read_text("utf-8")
    return cast("dict[str, Json]", json.loads(text))


def plain(value: object) -> Json:
    """A dataclass, mapping, sequence or scalar as JSON values; floats are rounded to `DECIMALS`.

    Raises:
        ValueError: a float is NaN or infinite.
        TypeError: there is no JSON for the value.
    """
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"a report cannot hold {value}; unknown is None")
        return round(value, DECIMALS)
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()  # a lone surrogate could not be written
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if is_dataclass(value) or hasattr(value, "_asdict"):
        return _object(value)
    if isinstance(value, Sequence):
        return [plain(v) for v in value]
    raise TypeError(f"no JSON for {type(value).__name__}")


def _object(value: object) -> dict[str, Json]:
    """A dataclass or a named tuple by its field names."""
    names = [f.name for f in fields(value)] if is_dataclass(value) else list(getattr(value, "_fields", ()))
    return {name: plain(getattr(value, name)) for name in names}


def _run(run: RunSummary) -> dict[str, Json]:
    return {
        "ttft_ms": None if run.ttft_ms is None else _object(run.ttft_ms),
        "total_ms": _object(run.total_ms),
        "prompt_tokens_mean": plain(run.prompt_tokens_mean),
        "cached_tokens_mean": plain(run.cached_tokens_mean),
        "answers_from_cache": run.answers_from_cache,
        "errors": run.errors,
    }
