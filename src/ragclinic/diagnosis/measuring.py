"""What most causes measure with: the requests around P95, which of their signals are missing, a bounded share."""

from typing import NamedTuple

from ragclinic.diagnosis.near import Measure, Near, answered, near_p95
from ragclinic.diagnosis.types import Budget, Interval, Missing, Signal
from ragclinic.signals.seen import Seen

MIN_KNOWN = 0.5
"""Weight of the requests around P95 that must tell a signal: below, the unseen may be the other way round."""
MODEL_ERROR = 0.15
"""Relative error of a fitted latency between lengths that were seen."""
UNIDENTIFIED_LOW = 0.4
"""Where all prompts are of one length, so much of the prefill at least is taken to come from their tokens."""


class Need(NamedTuple):
    """A signal, and what tells it of a request."""

    signal: Signal
    of: Measure


def around(seen: Seen, *needs: Need) -> Near | Missing:
    """The requests around P95, or the signals that too few of them tell."""
    near = near_p95(answered(seen))
    if near is None:
        return Missing(tuple(need.signal for need in needs))
    absent = tuple(need.signal for need in needs if near.known(need.of) < MIN_KNOWN)
    return Missing(absent) if absent else near


def bounded(share: float, budget: Budget, stages: tuple[str, ...], identified: bool = True) -> Interval:
    """The share of P95 with its bounds, never more than the stages it lives in take."""
    limit = min(1.0, budget.share(*stages))
    value = min(max(0.0, share), limit)
    low = value * (1 - MODEL_ERROR if identified else UNIDENTIFIED_LOW)
    return Interval(value, low, min(limit, value * (1 + MODEL_ERROR)))
