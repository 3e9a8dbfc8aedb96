"""How long this service takes to read and to write tokens, fitted from its own recording.

    prefill_ms = c0 + c1 * n + c2 * n * (context - n / 2)        n computed of `context` prompt tokens
    tpot_ms    = a + b * context                                 for each output token after the first

c1 is the work that each token costs, c2 its attention to every token before it, cached ones included: a cached
history is not free. Coefficients are never negative. Rows are the probes and the users' requests.

Where all prompts are of about one length, nothing tells what a shorter one would take: the fit is then
proportional, `identified` is False, and the ensemble spreads from *all fixed* to *all proportional*.
"""

import random
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ragclinic.diagnosis.robust import Floats, fit
from ragclinic.signals.seen import Request, Seen

MAX_ROWS = 300
MIN_ROWS = 3
"""Fewer rows than coefficients tell nothing."""
IDENTIFIED_RATIO = 1.5
"""Longest over shortest computed prompt above which slope and constant can be told apart."""
FIXED_SHARES = (0.0, 0.6)
"""Share of an unidentified prefill that may be constant: between these, evenly (none is known to be nearer)."""
MIN_OUTPUT_TOKENS = 4
"""Shorter answers say more of the clock than of the time per token."""
ENSEMBLE = 24
SEED = 20261201


@dataclass(frozen=True, slots=True)
class LatencyModel:
    """The fitted coefficients, all in ms; `rows` is how many requests and probes they rest on."""

    prefill: tuple[float, float, float]
    tpot: tuple[float, float] | None
    identified: bool
    rows: int

    def prefill_ms(self, computed: float, context: float | None = None) -> float:
        """Time to read `computed` new tokens of a prompt of `context` tokens (all new where not given)."""
        if computed <= 0:
            return 0.0
        n, whole = computed, max(computed, context if context is not None else computed)
        return self.prefill[0] + self.prefill[1] * n + self.prefill[2] * n * (whole - n / 2)

    def tpot_ms(self, context: float) -> float | None:
        """Time for each output token behind so many tokens, or None where no answer told it."""
        return None if self.tpot is None else self.tpot[0] + self.tpot[1] * context

    def saved_ms(self, request: Request, tokens: float) -> float | None:
        """Time that the request would save without so many of its computed prompt tokens, in prefill and decode.

        None where the request's tokens are unknown.
        """
        if request.prompt_tokens is None or request.computed_tokens is None:
            return None
        dropped = min(max(0.0, tokens), request.computed_tokens)
        context = request.prompt_tokens
        before = self.prefill_ms(request.computed_tokens, context)
        saved = before - self.prefill_ms(request.computed_tokens - dropped, context - dropped)
        if self.tpot is not None and request.output_tokens:
            saved += (request.output_tokens - 1) * self.tpot[1] * dropped
        return saved

    def cached_ms(self, request: Request, tokens: float) -> float | None:
        """Time that the request would save if so many more of its prompt tokens were cached."""
        if request.prompt_tokens is None or request.computed_tokens is None:
            return None
        more = min(max(0.0, tokens), request.computed_tokens)
        context = request.prompt_tokens
        before = self.prefill_ms(request.computed_tokens, context)
        return before - self.prefill_ms(request.computed_tokens - more, context)


class _Rows(NamedTuple):
    """What the fit reads of each row; `output` and `decode_ms` are 0 where unknown."""

    computed: Floats
    context: Floats
    prefill_ms: Floats
    output: Floats
    decode_ms: Floats

    def take(self, index: NDArray[np.int64]) -> "_Rows":
        return _Rows(*(column[index] for column in self))


def fit_latency(seen: Seen) -> LatencyModel | None:
    """The model of this recording, or None where too few requests tell their prefill time and tokens."""
    rows = _rows(seen)
    return None if len(rows.computed) < MIN_ROWS else _fit(rows, _identified(rows))


def ensemble(seen: Seen) -> tuple[LatencyModel, ...]:
    """Models of resampled rows: how far the recording leaves the coefficients open. Empty without a model."""
    rows = _rows(seen)
    size = len(rows.computed)
    if size < MIN_ROWS:
        return ()
    if not _identified(rows):
        low, high = FIXED_SHARES
        model, typical = _fit(rows, False), float(np.median(rows.computed))
        return tuple(
            _partly_fixed(model, typical, low + (high - low) * i / (ENSEMBLE - 1)) for i in range(ENSEMBLE)
        )
    rng = np.random.default_rng(SEED)
    samples = (rows.take(rng.integers(size, size=size)) for _ in range(ENSEMBLE))
    # A sample without its few short prompts says nothing of the slope; it stands for the whole then.
    return tuple(_fit(sample if _identified(sample) else rows, True) for sample in samples)


def _rows(seen: Seen) -> _Rows:
    """Probes and requests that tell their prefill, at most `MAX_ROWS` of these; the probes always."""
    probes = [r for r in seen.probes if _tells_prefill(r)]
    users = [r for r in seen.requests if r.error is None and _tells_prefill(r)]
    if len(users) > MAX_ROWS:
        users = random.Random(SEED).sample(users, MAX_ROWS)  # noqa: S311
    rows = probes + users
    return _Rows(
        computed=np.array([r.computed_tokens or 0 for r in rows], dtype=float),
        context=np.array([r.prompt_tokens or 0 for r in rows], dtype=float),
        prefill_ms=np.array([r.stage_ms("prefill") or 0.0 for r in rows], dtype=float),
        output=np.array([r.output_tokens or 0 for r in rows], dtype=float),
        decode_ms=np.array([r.stage_ms("decode") or 0.0 for r in rows], dtype=float),
    )


def _tells_prefill(request: Request) -> bool:
    return (request.computed_tokens or 0) > 0 and (request.stage_ms("prefill") or 0.0) > 0


def _identified(rows: _Rows) -> bool:
    return bool(rows.computed.max() >= IDENTIFIED_RATIO * rows.computed.min())


def _fit(rows: _Rows, identified: bool) -> LatencyModel:
    n = rows.computed
    prefill = (0.0, float(np.median(rows.prefill_ms / n)), 0.0)
    if identified:
        features = np.column_stack([np.ones(len(n)), n, n * (rows.context - n / 2)])
        c0, c1, c2 = (float(c) for c in fit(features, rows.prefill_ms))
        prefill = (c0, c1, c2)
    return LatencyModel(prefill, _fit_tpot(rows), identified, len(n))


def _fit_tpot(rows: _Rows) -> tuple[float, float] | None:
    told = (rows.output >= MIN_OUTPUT_TOKENS) & (rows.decode_ms > 0)
    if not told.any():
        return None
    context = rows.context[told]
    tpot = rows.decode_ms[told] / (rows.output[told] - 1)
    if len(tpot) < MIN_ROWS or context.max() < IDENTIFIED_RATIO * max(1.0, float(context.min())):
        return float(np.median(tpot)), 0.0
    a, b = (float(c) for c in fit(np.column_stack([np.ones(len(tpot)), context]), tpot))
    return a, b


def _partly_fixed(model: LatencyModel, typical_tokens: float, fixed: float) -> LatencyModel:
    per_token = model.prefill[1]
    prefill = (fixed * per_token * typical_tokens, (1 - fixed) * per_token, 0.0)
    return replace(model, prefill=prefill)
