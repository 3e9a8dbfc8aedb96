"""The values of a before/after comparison: plain numbers that `verify` computes and `report` renders.

Both runs answered the same questions. JSON names are the field names.
"""

from dataclasses import dataclass
from math import isfinite
from typing import Literal

from ragclinic.diagnosis.types import Interval, Prediction

ComparisonVerdict = Literal["better", "worse", "not-shown"]
"""`not-shown`: the interval of the speed-up holds 1, or the questions are too few; these runs do not tell."""


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Percentiles of a time in ms."""

    p50: float
    p95: float
    p99: float


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One run in numbers.

    `ttft_ms` and `total_ms` are on the user's clock; `ttft_ms` is None where no first byte was seen.
    `cached_tokens_mean` are prompt tokens that the server took from its prefix cache, per request.
    `answers_from_cache` counts requests that needed no LLM. `evidence_kept` is the share (0..1) of questions whose
    gold evidence is still in the prompt, `gold_answered` the share whose answer holds the gold answer; both are
    None where the questions come without gold.
    """

    name: str
    requests: int
    total_ms: Percentiles
    ttft_ms: Percentiles | None = None
    prompt_tokens_mean: float | None = None
    output_tokens_mean: float | None = None
    cached_tokens_mean: float | None = None
    answers_from_cache: int = 0
    errors: int = 0
    evidence_kept: float | None = None
    gold_answered: float | None = None


@dataclass(frozen=True, slots=True)
class AnswersCompared:
    """How alike the answers of both runs are.

    `identical` counts equal texts among `pairs`; `similarity_mean` (0..1) is the mean cosine similarity of the
    embedded answers, or None where they were not embedded.
    """

    pairs: int
    identical: int
    similarity_mean: float | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """The same questions before and after.

    A speed-up is before / after at P95, above 1 when it got faster, with its 95 % interval; from 0 to infinity
    where no question was answered in both runs. `predicted` is the P95
    of the total time that the diagnosis of `before` promised for the remedies taken together.
    """

    before: RunSummary
    after: RunSummary
    questions: int
    verdict: ComparisonVerdict
    speedup_total_p95: Interval
    speedup_ttft_p95: Interval | None = None
    predicted: Prediction | None = None
    answers: AnswersCompared | None = None

    @property
    def known_speedup(self) -> Interval | None:
        """The speed-up of the total time, or None where no question was answered in both runs."""
        speedup = self.speedup_total_p95
        return speedup if speedup.low > 0 and isfinite(speedup.high) else None

    @property
    def prediction_error(self) -> float | None:
        """(predicted - measured) / measured at P95 of the total time, signed, or None without a prediction."""
        measured_ms = self.after.total_ms.p95
        if self.predicted is None or measured_ms <= 0:
            return None
        return (self.predicted.p95_ms - measured_ms) / measured_ms

    @property
    def prediction_held(self) -> bool | None:
        """Whether the measured P95 lies inside the predicted interval, or None without a prediction."""
        if self.predicted is None:
            return None
        return self.predicted.low_ms <= self.after.total_ms.p95 <= self.predicted.high_ms
