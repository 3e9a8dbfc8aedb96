"""The prescription: settings that the engine knows, reasons that a person understands."""

import tomllib
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from diagnosis_builders import Ask, Service, make_seen
from diagnosis_patients import PATIENTS, SLO_MS, N, decode_bound, in_a_row, overlap_waste, tail_chunks_idle

from ragclinic.diagnosis import diagnose, predict, prescribe
from ragclinic.diagnosis.prescription import Prescription
from ragclinic.diagnosis.remedies import BUDGET_TOKENS, compiler, together
from ragclinic.diagnosis.replay import Replay
from ragclinic.engine.settings import Settings, load, preset
from ragclinic.errors import BadInput
from ragclinic.signals.seen import Seen

AS_FOUND = preset("as_found")


def prescribed(seen: Seen) -> Prescription:
    return prescribe(seen, diagnose(seen, SLO_MS))


@cache
def whole_cure() -> Prescription:
    return prescribed(everything_wrong())


def everything_wrong() -> Seen:
    """The pipeline as most teams have it, recorded with its settings."""
    asks = [
        Ask(in_a_row(i), session=f"s{i // 4}", question=f"how does part number {i % 11} work", output_tokens=120)
        for i in range(N)
    ]
    service = Service(stable=False, system_tokens=600, streamed=False, delivers_late=True)
    return make_seen(asks, service, settings=AS_FOUND.flat())


@pytest.mark.parametrize("cause", sorted(PATIENTS))
def test_what_is_prescribed_are_settings_that_the_engine_knows(cause: str) -> None:
    prescription = prescribed(PATIENTS[cause]())
    assert Settings().with_changes(prescription.settings)
    assert (prescription.prediction is None) == (not prescription.settings)


def test_the_as_found_pipeline_is_prescribed_the_whole_cure() -> None:
    prescription = whole_cure()
    assert prescription.settings == {
        "prompt.order": "stable-first",
        "compiler.enabled": True,
        "compiler.deduplicate": True,
        "compiler.merge_overlap": True,
        "compiler.budget_tokens": BUDGET_TOKENS,
        "cache.answers": True,
        "delivery.stream": True,
    }
    assert prescription.prediction is not None
    alone = [f.predicted_p95_ms for f in prescription.findings if f.predicted_p95_ms is not None]
    assert prescription.prediction.p95_ms < min(alone)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_file_loads_into_the_recorded_settings_with_just_the_changes(tmp_path: Path, lang: str) -> None:
    prescription = whole_cure()
    path = tmp_path / "prescription.toml"
    path.write_text(prescription.to_toml(lang), "utf-8")
    assert load(path) == AS_FOUND.with_changes(prescription.settings)


def test_each_finding_is_explained_above_its_setting_with_its_predicted_p95() -> None:
    prescription = whole_cure()
    text = prescription.to_toml()
    for finding in prescription.findings:
        if finding.remedy.settings:
            assert f"# {finding.cause}: {finding.evidence[0]}" in text
            assert f"# {finding.remedy.why}" in text
            assert f"{finding.predicted_p95_ms:,.0f} ms" in text
    assert prescription.prediction is not None
    assert f"{prescription.prediction.p95_ms:,.0f} ms" in text.splitlines()[1]
    assert "stream = true" in text


def test_the_chinese_file_has_chinese_comments() -> None:
    text = whole_cure().to_toml("zh")
    assert "由 ragclinic diagnose 写出" in text
    assert "易变的放最后" in text
    assert tomllib.loads(text) == tomllib.loads(whole_cure().to_toml("en"))


def test_settings_that_differ_from_the_defaults_are_kept_as_they_were() -> None:
    seen = replace(overlap_waste(), settings=AS_FOUND.with_changes({"llm.max_tokens": 99}).flat())
    text = prescribed(seen).to_toml()
    assert "max_tokens = 99 # as it was" in text
    assert "stream = false # as it was" in text


def test_settings_of_another_version_are_left_out() -> None:
    seen = replace(overlap_waste(), settings={"llm.old_name": 3, "compiler.enabled": False})
    assert "old_name" not in prescribed(seen).to_toml()


def test_what_stands_so_already_is_not_prescribed_again() -> None:
    seen = replace(overlap_waste(), settings=AS_FOUND.with_changes({"compiler.budget_tokens": 250}).flat())
    running = replace(seen, settings={**seen.settings, "compiler.enabled": True, "compiler.merge_overlap": False})
    assert dict(prescribed(running).settings) == {"compiler.merge_overlap": True}


def test_advice_without_a_setting_is_text_at_the_head_of_the_file() -> None:
    prescription = prescribed(decode_bound())
    assert prescription.settings == {}
    assert prescription.prediction is None
    assert "# decode-bound: Ask for shorter answers" in prescription.to_toml()
    assert tomllib.loads(prescription.to_toml()) == {}


def test_new_chunks_are_advice_and_no_setting_since_they_need_a_new_index() -> None:
    assert "chunking.overlap_tokens" in prescribed(overlap_waste()).findings[0].remedy.why
    assert not any(name.startswith("chunking") for name in prescribed(overlap_waste()).settings)


def test_a_finding_that_asks_for_any_of_the_compiler_gets_all_of_it() -> None:
    settings = prescribed(tail_chunks_idle()).settings
    assert settings == {**compiler(True, True, BUDGET_TOKENS)}


def test_nothing_found_prescribes_nothing() -> None:
    seen = overlap_waste()
    prescription = prescribe(seen, diagnose(seen, 1e6))
    assert (prescription.settings, prescription.findings, prescription.prediction) == ({}, (), None)


def test_remedies_together_take_the_value_that_does_more() -> None:
    assert together([{"a": True}, {"a": False}]) == {"a": True}
    assert together([compiler(budget_tokens=0), compiler(budget_tokens=400)])["compiler.budget_tokens"] == 400
    assert together([compiler(budget_tokens=300), compiler(budget_tokens=400)])["compiler.budget_tokens"] == 300
    assert together([]) == {}


def test_a_prescription_with_a_setting_that_does_not_exist_is_refused() -> None:
    with pytest.raises(BadInput, match=r"unknown setting llm\.slot"):
        Prescription({"llm.slot": 3}).to_toml()


def small_fault(order: str) -> Seen:
    """Redundant chunks, and a short system prompt behind a clock: too little of P95 to be a finding."""
    service = Service(stable=False, system_tokens=45, streamed=True)
    return make_seen(
        [Ask(in_a_row(i)) for i in range(N)], service, settings={**AS_FOUND.flat(), "prompt.order": order}
    )


def test_a_fault_too_small_to_find_is_cured_where_it_will_matter() -> None:
    seen = small_fault("volatile-first")
    prescription = prescribed(seen)
    assert "prefix-unstable" not in [f.cause for f in prescription.findings]
    assert prescription.also == {"prompt.order"}
    replay = Replay(seen)
    before = replay.mean_ms({n: v for n, v in prescription.settings.items() if n != "prompt.order"})
    after = replay.mean_ms(prescription.settings)
    assert before is not None
    assert after is not None
    assert after < 0.97 * before
    assert prescription.prediction == predict(seen, prescription.settings)
    assert "once the rest is cured" in prescription.to_toml()


def test_what_stands_so_already_is_not_prescribed_on_top() -> None:
    assert "prompt.order" not in prescribed(small_fault("stable-first")).settings
