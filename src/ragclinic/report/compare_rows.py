"""A comparison as finished text, which the terminal and the page show alike."""

from collections.abc import Callable
from typing import NamedTuple

from ragclinic.diagnosis.compare_types import AnswersCompared, Comparison, Percentiles
from ragclinic.diagnosis.types import Interval
from ragclinic.report.numbers import change, count, duration, percent, times
from ragclinic.report.text import Words

UNKNOWN = "–"


class Row(NamedTuple):
    """One number of both runs, and how it changed ('' where that cannot be said)."""

    label: str
    before: str
    after: str
    change: str


def rows(comparison: Comparison, words: Words) -> list[Row]:
    """The table, in the order in which a person asks; what neither run knows is left out."""
    before, after = comparison.before, comparison.after
    found = [
        *_percentiles(words("compare.ttft"), before.ttft_ms, after.ttft_ms),
        *_percentiles(words("compare.total"), before.total_ms, after.total_ms),
        _row(words("compare.prompt_tokens"), before.prompt_tokens_mean, after.prompt_tokens_mean, count, change),
        _row(words("compare.cached_tokens"), before.cached_tokens_mean, after.cached_tokens_mean, count, None),
        _row(words("compare.output_tokens"), before.output_tokens_mean, after.output_tokens_mean, count, change),
        _row(words("compare.from_cache"), before.answers_from_cache, after.answers_from_cache, count, None),
        _row(words("compare.evidence_kept"), before.evidence_kept, after.evidence_kept, percent, _points),
        _row(words("compare.gold_answered"), before.gold_answered, after.gold_answered, percent, _points),
        _row(words("compare.errors"), before.errors or None, after.errors or None, count, None),
    ]
    return [row for row in found if row is not None]


def headline(comparison: Comparison, words: Words) -> str:
    """The gain in one line, with its interval."""
    speedup = comparison.known_speedup
    if speedup is None:
        return words("compare.no_pairs")
    if comparison.verdict == "not-shown" and not speedup.low <= 1 <= speedup.high:
        return words("compare.too_few", n=count(comparison.questions))
    low, high = speedup.low, speedup.high
    if comparison.verdict == "worse":  # said as a slow-down, so is its interval
        low, high = 1 / high, 1 / low
    interval = words("interval_95", range=words("range", low=times(low), high=times(high)))
    said = times(speedup.value) if comparison.verdict == "not-shown" else gain(speedup, words)
    return words(f"compare.{comparison.verdict}", gain=said, interval=interval)


def prediction(comparison: Comparison, words: Words) -> str:
    """The predicted beside the measured P95, or '' where nothing was predicted."""
    predicted, error = comparison.predicted, comparison.prediction_error
    if predicted is None or error is None:
        return ""
    return words(
        "compare.predicted",
        p95=duration(predicted.p95_ms),
        interval=words(
            "interval_80", range=words("range", low=duration(predicted.low_ms), high=duration(predicted.high_ms))
        ),
        measured=duration(comparison.after.total_ms.p95),
        held=words("compare.inside" if comparison.prediction_held else "compare.outside"),
        error=percent(abs(error)),
    )


def answers(compared: AnswersCompared, words: Words) -> str:
    """How alike the answers are, in one line."""
    line = words("compare.answers", pairs=count(compared.pairs), identical=count(compared.identical))
    if compared.similarity_mean is not None:
        line += words("comma") + words("compare.similarity", value=f"{compared.similarity_mean:.2f}")
    return line


def gain(speedup: Interval, words: Words) -> str:
    """How much faster, or slower, in a few words."""
    if speedup.value >= 1:
        return words("compare.faster", times=times(speedup.value))
    return words("compare.slower", times=times(1 / speedup.value))


def _percentiles(label: str, before: Percentiles | None, after: Percentiles | None) -> list[Row | None]:
    return [
        _row(
            f"{label} {name.upper()}", getattr(before, name, None), getattr(after, name, None), duration, _speedup
        )
        for name in ("p50", "p95", "p99")
    ]


def _row(
    label: str,
    before: float | None,
    after: float | None,
    show: Callable[[float], str],
    compare: Callable[[float, float], str] | None,
) -> Row | None:
    if before is None and after is None:
        return None
    compared = compare(before, after) if compare and before is not None and after is not None else ""
    return Row(
        label, UNKNOWN if before is None else show(before), UNKNOWN if after is None else show(after), compared
    )


def _speedup(before_ms: float, after_ms: float) -> str:
    return times(before_ms / after_ms) if after_ms > 0 else ""


def _points(before: float, after: float) -> str:
    """Shares are compared in percentage points; a change of a change misleads."""
    points = round((after - before) * 100)
    return "=" if points == 0 else f"{'+' if points > 0 else '−'}{abs(points)} pp"
