"""What the terminal shows, at fixed widths; RAGCLINIC_REWRITE_GOLDEN=1 rewrites the golden files."""

import io
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from ragclinic.diagnosis.compare_types import Comparison
from ragclinic.diagnosis.say import say
from ragclinic.diagnosis.types import Diagnosis, Finding, Interval, Latency, MissingSignal, Remedy
from ragclinic.report.terminal import print_comparison, print_diagnosis
from ragclinic.report.terminal_diagnosis import VERDICT_LINES
from ragclinic.report.text import Lang

GOLDEN = Path(__file__).parent / "golden"
NEXT = "ragclinic verify out/demo/as-found --with prescription.toml"
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def console(width: int = 80, **options: object) -> Console:
    return Console(file=io.StringIO(), width=width, **options)  # type: ignore[arg-type]


def shown(to: Console) -> str:
    assert isinstance(to.file, io.StringIO)
    return "\n".join(line.rstrip() for line in to.file.getvalue().splitlines()) + "\n"


def diagnosed(diagnosis: Diagnosis, width: int = 80, lang: Lang = "en", next_command: str | None = NEXT) -> str:
    to = console(width)
    print_diagnosis(to, diagnosis, lang, next_command)
    return shown(to)


def check(name: str, text: str) -> None:
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("RAGCLINIC_REWRITE_GOLDEN") == "1":
        path.write_text(text, "utf-8")
    assert text == path.read_text("utf-8")


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("width", [80, 120])
def test_diagnosis_looks_as_reviewed(diagnosis: Diagnosis, lang: Lang, width: int) -> None:
    """The verdict with chain, remedy and prediction, then the rest."""
    check(f"diagnosis-{width}.{lang}", diagnosed(diagnosis, width, lang))


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_unknown_and_healthy_look_as_reviewed(diagnosis: Diagnosis, lang: Lang) -> None:
    """An honest unknown says what to add; healthy is short."""
    unknown = replace(diagnosis, verdict="unknown", latency_ms=None, budget=(), findings=(), notes=(), requests=2)
    healthy = replace(
        diagnosis,
        verdict="healthy",
        latency_ms=Latency(900.0, 2_000.0, 2_600.0),
        findings=(),
        missing_signals=(),
        notes=(),
    )
    text = (
        diagnosed(unknown, lang=lang, next_command=None)
        + "---\n"
        + diagnosed(healthy, lang=lang, next_command=None)
    )
    check(f"unknown-healthy.{lang}", text)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_comparison_looks_as_reviewed(comparison: Comparison, lang: Lang) -> None:
    """Better, worse and not shown."""
    to = console()
    print_comparison(to, comparison, lang)
    worse = replace(
        comparison, verdict="worse", speedup_total_p95=Interval(0.8, 0.7, 0.9), predicted=None, answers=None
    )
    unsure = replace(worse, verdict="not-shown", speedup_total_p95=Interval(1.08, 0.93, 1.31))
    for other in (worse, unsure):
        print_comparison(to, other, lang)
    check(f"comparison.{lang}", shown(to))


@pytest.mark.parametrize("width", [40, 60, 80, 100, 160, 240])
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_verdict_has_at_most_eight_lines_within_the_width(diagnosis: Diagnosis, width: int, lang: Lang) -> None:
    """However long the evidence, a person sees the verdict at once, and nothing wraps."""
    long = replace(
        diagnosis.findings[0], evidence=("Word after word of evidence. " * 30,), leads_to=("prefill-bound",) * 2
    )
    to = console(width)
    print_diagnosis(to, replace(diagnosis, findings=(long,)), lang, NEXT)
    lines = shown(to).splitlines()
    assert lines.index("") <= VERDICT_LINES
    assert max(to.render_str(line, markup=False, highlight=False).cell_len for line in lines) <= width


def test_all_lines_are_used_before_evidence_is_cut(diagnosis: Diagnosis) -> None:
    """Cut text ends in an ellipsis, and only where the eight lines are full."""
    long = replace(diagnosis.findings[0], evidence=("Word after word of evidence. " * 30,))
    lines = diagnosed(replace(diagnosis, findings=(long,))).split("\n\n")[0].splitlines()
    assert len(lines) == VERDICT_LINES
    cut = [line for line in lines if line.endswith("…")]
    assert len(cut) == 2  # the last line of evidence, and the remedy
    assert cut[1].startswith("remedy")


def test_missing_signals_come_with_the_line_to_add(diagnosis: Diagnosis) -> None:
    """Each with the causes it would settle."""
    missing = MissingSignal("kv_usage", ("kv-cache-exhausted",), "start the server with --metrics")
    text = diagnosed(replace(diagnosis, missing_signals=(missing,)), width=120)
    assert "kv_usage (settles kv-cache-exhausted): start the server with --metrics" in text


def test_bucketed_percentile_shows_its_interval(diagnosis: Diagnosis) -> None:
    """A P95 from histogram buckets does not pretend to be exact."""
    latency = Latency(6_000.0, 8_900.0, 9_700.0, bounds=(5_000.0, 10_000.0))
    assert "P95 8.9 s (5.0 s to 10.0 s)" in diagnosed(replace(diagnosis, latency_ms=latency))


def test_sentences_that_know_chinese_say_it(diagnosis: Diagnosis) -> None:
    """The diagnosis speaks both languages; the report picks."""
    told = say("{n:,} tokens lost", "丢失 {n:,} 个 token", n=2604)
    remedy = Remedy({}, say("Stable parts first.", "稳定部分在前。"))
    finding = replace(diagnosis.findings[0], evidence=(told, told), remedy=remedy)
    changed = replace(diagnosis, findings=(finding,), notes=(say("A note.", "一条说明。"),))
    zh, en = diagnosed(changed, lang="zh"), diagnosed(changed)
    assert "丢失 2,604 个 token丢失 2,604 个 token" in zh
    assert "稳定部分在前。" in zh
    assert "一条说明。" in zh
    assert "2,604 tokens lost 2,604 tokens lost" in en


def test_comparison_without_common_questions_says_so(comparison: Comparison) -> None:
    """Neither an infinite gain nor a claim about an interval that is not there."""
    nothing = replace(
        comparison, questions=0, verdict="not-shown", speedup_total_p95=Interval(1.0, 0.0, float("inf"))
    )
    few = replace(comparison, questions=2, verdict="not-shown")
    shown_lines = []
    for case in (nothing, few):
        to = console()
        print_comparison(to, case)
        shown_lines.append(shown(to).splitlines()[0])
    assert shown_lines == [
        "Not shown: no question was answered in both runs.",
        "Not shown: too few questions (2).",
    ]


def hostile(text: str) -> Finding:
    return Finding(
        cause="context-redundant", axis="context", confidence=0.9, share_of_p95=0.5, evidence=(text,),
        signals_used=(), leads_to=(), remedy=Remedy({"llm.model": text}, text),
    )  # fmt: skip


def test_text_from_recordings_is_shown_not_obeyed(diagnosis: Diagnosis) -> None:
    """Escape sequences do not reach the terminal, and markup is text."""
    to = console(200, force_terminal=True, color_system=None)
    finding = hostile("\x1b[2J\x1b]0;owned\x07 [bold red]loud[/] \u202egnp.exe")
    noisy = replace(diagnosis, findings=(finding, finding), notes=("\x1b[31m",))
    print_diagnosis(to, noisy, next_command="ragclinic \x9b2J")
    text = COLOUR.sub("", shown(to))
    assert not set(text) & set("\x1b\x07\x9b\u202e")
    assert "[bold red]loud[/]" in text


def test_no_color_is_respected_and_loses_no_word(diagnosis: Diagnosis, comparison: Comparison) -> None:
    """With NO_COLOR there are no colours; the words are the same as in colour and in a pipe."""
    outputs = {}
    for name, environment in (("colour", {}), ("plain", {"NO_COLOR": "1"})):
        to = console(force_terminal=True, color_system="truecolor", _environ=environment)
        print_diagnosis(to, diagnosis, next_command=NEXT)
        print_comparison(to, comparison)
        outputs[name] = shown(to)
    colours = re.compile(r"\x1b\[(?:\d+;)*(?:3[0-8]|9[0-7])m")
    assert colours.search(outputs["colour"])
    assert not colours.search(outputs["plain"])
    words = {name: [line.rstrip() for line in COLOUR.sub("", text).splitlines()] for name, text in outputs.items()}
    assert words["colour"] == words["plain"]
