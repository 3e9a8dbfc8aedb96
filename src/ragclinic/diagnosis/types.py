"""The values a diagnosis is made of. Nothing here reads or computes; JSON names are the field names.

Three answers where the truth has three: `Found`, `NotFound`, `CannotTell`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, Literal, NamedTuple, TypeVar

from ragclinic.signals.seen import Seen

Axis = Literal["memory", "context", "pipeline", "capacity"]
Verdict = Literal["memory", "context", "coupled", "pipeline", "capacity", "healthy", "unknown"]
Basis = Literal["calibrated", "roofline", "replay"]
M = TypeVar("M")


@dataclass(frozen=True, slots=True)
class Signal:
    """Something a cause needs to see, and the one line that turns it on."""

    name: str
    how: str


class Missing(NamedTuple):
    """The signals that were not there."""

    signals: tuple[Signal, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """The cause is there. `evidence` are sentences with the numbers in them."""

    confidence: float
    evidence: tuple[str, ...]
    variant: str | None = None


@dataclass(frozen=True, slots=True)
class NotFound:
    """The cause is not there; `because` holds the number that spoke against it."""

    because: str


@dataclass(frozen=True, slots=True)
class CannotTell:
    """The signals do not tell: `missing` are absent, or `because` the numbers fit a look-alike as well."""

    missing: tuple[Signal, ...] = ()
    because: str = ""


Answer = Found | NotFound | CannotTell


class Interval(NamedTuple):
    """A value with its bounds, low <= value <= high."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class StageShare:
    """Milliseconds of one stage in the requests around P95, and its share of their total."""

    stage: str
    p95_ms: float
    share: float


@dataclass(frozen=True, slots=True)
class Budget:
    """Where the time of the requests around P95 goes; the stages sum to `p95_ms`."""

    p95_ms: float
    stages: tuple[StageShare, ...] = ()

    def share(self, *names: str) -> float:
        """Share of P95 (0..1) spent in the named stages."""
        return sum(s.share for s in self.stages if s.stage in names)


@dataclass(frozen=True, slots=True)
class Remedy:
    """Settings that cure a cause (dotted names and values of a prescription), and why, in a sentence."""

    settings: Mapping[str, object]
    why: str


@dataclass(frozen=True, slots=True)
class Prediction:
    """P95 of the total time with the remedy, with an 80 % interval and what it rests on."""

    p95_ms: float
    low_ms: float
    high_ms: float
    basis: Basis


@dataclass(frozen=True, slots=True)
class Cause(Generic[M]):
    """One cause: how it is measured, decided, weighed and cured. See docs/adding/cause.md.

    `leads_to` are causes that this one brings about: found together, this one comes first. `unless` are causes
    that explain the same seconds better: where one of them is found, this one is not named.
    """

    id: str
    axis: Axis
    needs: tuple[Signal, ...]
    leads_to: tuple[str, ...]
    measure: Callable[[Seen], "M | Missing"]
    decide: Callable[[M], Answer]
    share: Callable[[M, Budget], Interval]
    remedy: Callable[[M, str | None], Remedy]
    unless: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """A cause that was found, with all a person needs to believe it and to act."""

    cause: str
    axis: Axis
    confidence: float
    share_of_p95: float | None
    evidence: tuple[str, ...]
    signals_used: tuple[str, ...]
    leads_to: tuple[str, ...]
    remedy: Remedy
    variant: str | None = None
    predicted_p95_ms: float | None = None
    predicted_p95_low_ms: float | None = None
    predicted_p95_high_ms: float | None = None
    basis: Basis | None = None


@dataclass(frozen=True, slots=True)
class MissingSignal:
    """One signal that was not there, the causes it would settle, and the line to add."""

    signal: str
    would_settle: tuple[str, ...]
    how: str


@dataclass(frozen=True, slots=True)
class Latency:
    """Percentiles in ms; `bounds` is an interval for P95 where only histogram buckets were seen."""

    p50: float
    p95: float
    p99: float
    bounds: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Axes:
    """The two axes, means over requests, 0..1, or None where they cannot be told."""

    memory_pressure: float | None = None
    context_redundancy: float | None = None


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What `ragclinic diagnose --json` prints, and what every report is made from."""

    verdict: Verdict
    slo_ms: float
    requests: int
    latency_ms: Latency | None
    budget: tuple[StageShare, ...] = ()
    axes: Axes = field(default_factory=Axes)
    findings: tuple[Finding, ...] = ()
    missing_signals: tuple[MissingSignal, ...] = ()
    notes: tuple[str, ...] = ()
