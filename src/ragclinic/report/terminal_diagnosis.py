"""A diagnosis in the terminal: a verdict of at most eight lines, then a line or two for whatever else there is.

Colour only repeats what the words say, so `NO_COLOR` (which the console obeys) loses nothing. Text from
recordings is shown, never obeyed: no markup, no control characters.
"""

from collections.abc import Sequence
from typing import NamedTuple

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from ragclinic.diagnosis.types import Diagnosis, Finding, MissingSignal, StageShare
from ragclinic.report.numbers import duration, percent, times
from ragclinic.report.text import Lang, Words, setting, visible

VERDICT_LINES = 8
"""What a person on call reads before deciding; longer evidence is cut here, the HTML page has all of it."""

LABEL_CELLS = 11
BAR_CELLS = 20
BAR_GLYPHS = "█▓▒░"
"""Densities in order of size, so that the bar reads without colour; the fourth is all that is left."""

BAR_STYLES = ("blue", "yellow", "magenta", "bright_black")
VERDICT_STYLES = {"healthy": "bold green", "unknown": "bold yellow"}


class _Row(NamedTuple):
    """A label and its text, on at most so many lines."""

    label: str
    text: Text
    lines: int = 1
    label_style: str = "dim"


def print_diagnosis(
    console: Console, diagnosis: Diagnosis, lang: Lang = "en", next_command: str | None = None
) -> None:
    """Print the verdict, the other findings, the missing signals and the notes to the console.

    `next_command` is the command line that the verdict ends with.
    """
    words = Words(lang)
    verdict = _verdict(diagnosis, words)
    if next_command:
        verdict.append(_Row(words("terminal.next"), Text(visible(next_command), "bold")))
    _print(_within(VERDICT_LINES, verdict, console), console)
    rest = [_finding_line(f, words) for f in diagnosis.findings[1:]]
    rest += [_missing_line(m, words) for m in diagnosis.missing_signals]
    rest += [_Row(words("terminal.note"), Text(words.said(note)), 3) for note in diagnosis.notes]
    if rest:
        console.print()
        _print(_labels_once(rest), console)


def _verdict(diagnosis: Diagnosis, words: Words) -> list[_Row]:
    rows = [_headline(diagnosis, words)]
    if diagnosis.budget:
        rows.append(_Row("P95", _budget_line(diagnosis.budget, words)))
    if diagnosis.findings:
        rows += _top_finding(diagnosis.findings[0], words)
    else:
        rows.append(_Row("", Text(words(f"verdict.{diagnosis.verdict}")), 2))
    return rows


def _headline(diagnosis: Diagnosis, words: Words) -> _Row:
    latency = diagnosis.latency_ms
    if latency is None:
        text = Text(words("terminal.no_latency"), "bold")
    else:
        text = Text()
        text.append(f"P95 {duration(latency.p95)}", "bold")
        if latency.bounds:
            low, high = latency.bounds
            text.append(f" ({words('range', low=duration(low), high=duration(high))})")
        over = times(latency.p95 / diagnosis.slo_ms)
        text.append(words("comma") + words("terminal.objective", times=over, slo=duration(diagnosis.slo_ms)))
    text.append(f"{words('comma')}n = {diagnosis.requests}", "not bold")
    style = VERDICT_STYLES.get(diagnosis.verdict, "bold red")
    return _Row(words(f"verdict_word.{diagnosis.verdict}"), text, label_style=style)


def _budget_line(budget: Sequence[StageShare], words: Words) -> Text:
    """One bar of the three largest stages and the rest, its legend behind it in the same order."""
    shares = [(words.name("stage", visible(s.stage)), s.share) for s in sorted(budget, key=lambda s: -s.share)]
    parts = shares[:3]
    if len(shares) > 3:
        parts.append((words("terminal.rest"), sum(share for _, share in shares[3:])))
    bar, drawn, total = Text(), 0, 0.0
    for (_, share), glyph, style in zip(parts, BAR_GLYPHS, BAR_STYLES, strict=False):
        total += share
        cells = round(min(total, 1.0) * BAR_CELLS) - drawn  # rounded at the edges, so that the bar has its length
        drawn += cells
        bar.append(glyph * cells, style)
    return bar.append("  " + " · ".join(f"{name} {percent(share)}" for name, share in parts))


def _top_finding(finding: Finding, words: Words) -> list[_Row]:
    cause = Text()
    cause.append(" → ".join((finding.cause, *finding.leads_to)), "bold")
    if finding.share_of_p95 is not None:
        cause.append(words("comma") + words("share_of_p95", share=percent(finding.share_of_p95)))
    cause.append(words("comma") + words("confidence", value=f"{finding.confidence:.2f}"))
    settings = ", ".join(setting(name, value) for name, value in finding.remedy.settings.items())
    remedy = Text()
    remedy.append(settings, "green")
    remedy.append((words("colon") if settings else "") + words.said(finding.remedy.why))
    rows = [
        _Row(words("terminal.cause"), cause),
        _Row(words("terminal.evidence"), Text(words.all_said(finding.evidence)), VERDICT_LINES),
        _Row(words("terminal.remedy"), remedy, VERDICT_LINES),
    ]
    if finding.predicted_p95_ms is not None:
        rows.append(_Row(words("terminal.predicted"), Text(prediction(finding, words))))
    return rows


def prediction(finding: Finding, words: Words) -> str:
    """The predicted P95 of a finding with its interval and basis, or '' where there is none."""
    if finding.predicted_p95_ms is None:
        return ""
    parts = [f"P95 {duration(finding.predicted_p95_ms)}"]
    low, high = finding.predicted_p95_low_ms, finding.predicted_p95_high_ms
    if low is not None and high is not None:
        parts.append(words("interval_80", range=words("range", low=duration(low), high=duration(high))))
    if finding.basis is not None:
        parts.append(words.name("basis", finding.basis))
    return words("comma").join(parts)


def _finding_line(finding: Finding, words: Words) -> _Row:
    text = Text()
    text.append("    " if finding.share_of_p95 is None else f"{percent(finding.share_of_p95):>4}")
    text.append(f" {finding.cause}", "bold")
    text.append(words("colon") + words.all_said(finding.evidence or (finding.remedy.why,)))
    return _Row(words("terminal.also"), text)


def _missing_line(missing: MissingSignal, words: Words) -> _Row:
    text = Text()
    text.append(words.said(missing.signal), "bold")
    if missing.would_settle:
        text.append(words("terminal.would_settle", causes=", ".join(missing.would_settle)))
    text.append(words("colon") + words.said(missing.how))
    return _Row(words("terminal.missing"), text, 4)


def _within(lines: int, rows: Sequence[_Row], console: Console) -> list[_Row]:
    """The rows cut to fit: each has a line, and what is left over goes to the first that need it."""
    spare = lines - len(rows)
    fitted = []
    for row in rows:
        extra = min(spare, row.lines - 1, len(_wrapped(row, console)) - 1)
        spare -= extra
        fitted.append(row._replace(lines=1 + extra))
    return fitted


def _labels_once(rows: Sequence[_Row]) -> list[_Row]:
    labels = ["", *(r.label for r in rows)]
    return [
        r._replace(label="" if r.label == before else r.label) for r, before in zip(rows, labels, strict=False)
    ]


def _print(rows: Sequence[_Row], console: Console) -> None:
    for row in rows:
        lines = _wrapped(row, console)
        if len(lines) > row.lines:
            lines = lines[: row.lines]
            lines[-1].truncate(_text_cells(console) - 1)
            lines[-1].rstrip()
            lines[-1].append("…")
        for number, line in enumerate(lines):
            label = row.label if number == 0 else ""
            padding = " " * max(1, LABEL_CELLS - cell_len(label))
            console.print(Text.assemble((label, row.label_style), padding, line), soft_wrap=True, highlight=False)


def _wrapped(row: _Row, console: Console) -> list[Text]:
    one_line = row.text.copy()
    one_line.plain = one_line.plain.replace("\n", " ")
    lines = list(one_line.wrap(console, _text_cells(console)))
    for line in lines:
        line.rstrip()
    return lines


def _text_cells(console: Console) -> int:
    return max(20, console.width - LABEL_CELLS)
