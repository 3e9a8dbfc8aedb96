"""What P95 would be with other settings: every recorded request is played again, its prompt as they would make it.

Of each request the time that the settings do not touch is kept as recorded. Prefill and decode are scaled by the
latency model from the old token counts to the new ones, so each request keeps its own disturbances; waiting is
played through the server's slots again. The interval comes from resampled requests and models, and from how much
two runs of the same thing differ.

What is modelled: `compiler.*` (duplicates, overlaps, budget), `prompt.order`, `cache.answers`, `llm.keep_loaded`,
`llm.slots`. `delivery.stream` changes when the first text comes and not when the last does, so it changes nothing
here. Other settings are taken to change nothing; a prescription does not hold them.
"""

from collections.abc import Mapping
from functools import cached_property

import numpy as np

from ragclinic.diagnosis.columns import (
    Compilation,
    Prompts,
    Times,
    before_server_ms,
    no_stage_ms,
    prompts_of,
    stable_prefixes,
    times_of,
)
from ragclinic.diagnosis.latency_model import LatencyModel, ensemble, fit_latency
from ragclinic.diagnosis.near import P95, answered
from ragclinic.diagnosis.queueing import Job, slots_of, waits
from ragclinic.diagnosis.repeats import DEFAULT_TTL_S, repeats
from ragclinic.diagnosis.robust import Floats
from ragclinic.diagnosis.types import Prediction
from ragclinic.signals.seen import Seen

RESAMPLES = 100
LOW, HIGH = 0.10, 0.90
"""The bounds of an 80 % interval."""
RUN_TO_RUN = 0.05
"""Relative spread of P95 between runs of the same thing; assumed, until scored predictions say better."""
COMPILE_MS_PER_TOKEN = 0.05
"""Time to rank sentences, for each token of them: 0.03 (Chinese) to 0.08 (English), measured over 20 questions,
six chunks of 512 tokens, on two slow cores with other work beside."""
NEEDS_MODEL = ("compiler.enabled", "prompt.order")
SEED = 20261201


class Replay:
    """A recording made ready to be played again; build it once and ask for many settings."""

    def __init__(self, seen: Seen) -> None:
        self._seen = seen
        self._requests = answered(seen)
        self.model = fit_latency(seen)
        self._ensemble = ensemble(seen)
        self._times = times_of(self._requests)
        self._prompts = prompts_of(self._requests)
        self._slots = slots_of(seen)

    def predict(self, changes: Mapping[str, object]) -> Prediction | None:
        """P95 of the total time with these changes, or None where the recording does not tell what they do."""
        played = self._played(changes)
        if played is None:
            return None
        times, prompts = played
        point = float(np.quantile(times.total(), P95))
        draws = self._draws(times, prompts)
        low, high = (float(v) for v in np.quantile(draws, (LOW, HIGH)))
        if "llm.slots" in changes:
            # More slots help where the hardware idles; where it is the limit they give nothing.
            high = max(high, float(np.quantile(self._times.total(), P95)))
        return Prediction(point, min(low, point), max(high, point), "replay")

    @cached_property
    def _compiled(self) -> Compilation:
        return Compilation.of(self._requests)

    @cached_property
    def _stable(self) -> Floats:
        return stable_prefixes(self._requests)

    @cached_property
    def _waits_before(self) -> list[float]:
        return waits(self._jobs(self._times), self._slots)

    def mean_ms(self, changes: Mapping[str, object]) -> float | None:
        """The mean total time with these changes: what they do for all requests, not for one percentile."""
        played = self._played(changes)
        return None if played is None else float(played[0].total().mean())

    def _played(self, changes: Mapping[str, object]) -> tuple[Times, Prompts] | None:
        """Every request's time and prompt with these changes, or None where the recording does not tell."""
        if not self._requests or not changes:
            return None
        if self.model is None and any(name in changes for name in NEEDS_MODEL):
            return None
        settings = {**self._seen.settings, **changes}
        hits = self._hits(settings)
        prompts = self._prompts_after(settings, changes)
        return self._queued(self._times_after(settings, changes, prompts, hits), changes), prompts

    def _hits(self, settings: Mapping[str, object]) -> frozenset[str]:
        """Requests that the answer cache would have answered and did not."""
        if not settings.get("cache.answers") or self._seen.settings.get("cache.answers"):
            return frozenset()
        ttl_s = settings.get("cache.ttl_s", DEFAULT_TTL_S)
        return frozenset(
            repeats(self._requests, float(ttl_s) if isinstance(ttl_s, int | float) else DEFAULT_TTL_S)
        )

    def _prompts_after(self, settings: Mapping[str, object], changes: Mapping[str, object]) -> Prompts:
        now, compiled = self._prompts, self._compiled
        dropped = np.zeros(len(self._requests))
        if any(name.startswith("compiler.") for name in changes) and settings.get("compiler.enabled"):
            dropped = compiled.tokens - compiled.after(settings)
        context = np.maximum(1.0, now.context - dropped)
        cached = now.context - now.computed
        # What was cached of the context itself (a question asked again) shrinks with the context.
        before = np.minimum(cached, compiled.tokens_before)
        kept = np.divide(
            compiled.tokens - dropped, compiled.tokens, out=np.ones_like(dropped), where=compiled.tokens > 0
        )
        cached = before + (cached - before) * kept
        if changes.get("prompt.order") == "stable-first":
            cached = np.maximum(cached, self._stable)
        return Prompts(context - np.minimum(cached, context - 1), context)

    def _times_after(
        self,
        settings: Mapping[str, object],
        changes: Mapping[str, object],
        prompts: Prompts,
        hits: frozenset[str],
    ) -> Times:
        now = self._times
        prefill, decode = now.prefill, now.decode
        if self.model is not None:
            prefill = now.prefill * _ratio(self.model, self._prompts, prompts)
            decode = now.decode * _tpot_ratio(self.model, self._prompts, prompts)
        rest = now.rest.copy()
        if changes.get("compiler.enabled") and settings.get("compiler.budget_tokens"):
            rest += COMPILE_MS_PER_TOKEN * self._compiled.tokens
        load = np.zeros_like(now.load) if changes.get("llm.keep_loaded") else now.load
        hit = np.array([r.id in hits for r in self._requests], dtype=bool)
        idle = np.array([no_stage_ms(r) for r in self._requests])
        return Times(
            rest=np.where(hit, idle, rest),
            load=np.where(hit, 0.0, load),
            queue=np.where(hit, 0.0, now.queue),
            prefill=np.where(hit, 0.0, prefill),
            decode=np.where(hit, 0.0, decode),
        )

    def _queued(self, times: Times, changes: Mapping[str, object]) -> Times:
        """The times with what each request would wait now: as recorded, plus what the simulation says changed."""
        if not times.queue.any():
            return times
        slots = changes.get("llm.slots")
        after = waits(self._jobs(times), slots if isinstance(slots, int) else self._slots)
        change = np.array(after) - np.array(self._waits_before)
        queue = np.where(times.queue > 0, np.maximum(0.0, self._times.queue + change), 0.0)
        return Times(times.rest, times.load, queue, times.prefill, times.decode)

    def _jobs(self, times: Times) -> list[Job]:
        before_ms = np.array([before_server_ms(r) for r in self._requests])
        service = times.load + times.prefill + times.decode
        jobs: list[Job] = []
        last: dict[tuple[str | None, str], int] = {}
        for i, request in enumerate(self._requests):
            before = min(before_ms[i], times.rest[i])
            arrival = request.arrival_ns / 1e6
            follows, think = None, 0.0
            if request.session is not None:
                key = (request.tenant, request.session)
                previous = last.get(key)
                if previous is not None:
                    earlier = self._requests[previous]
                    think = arrival - earlier.arrival_ns / 1e6 - earlier.total_ms
                    follows = previous if think >= 0 else None
                last[key] = i
            jobs.append(Job(arrival, before, service[i], times.rest[i] - before, follows, max(0.0, think)))
        return jobs

    def _draws(self, times: Times, prompts: Prompts) -> Floats:
        """P95 of so many resampled futures."""
        rng = np.random.default_rng(SEED)
        size = len(self._requests)
        fixed = times.rest + times.load + times.queue
        generations = [times.prefill + times.decode]
        if self.model is not None:
            prefill = np.where(times.prefill > 0, times.prefill / _ratio(self.model, self._prompts, prompts), 0.0)
            decode = times.decode / _tpot_ratio(self.model, self._prompts, prompts)
            generations = [
                prefill * _ratio(m, self._prompts, prompts) + decode * _tpot_ratio(m, self._prompts, prompts)
                for m in self._ensemble
            ]
        draws = np.empty(RESAMPLES)
        for k in range(RESAMPLES):
            # Twice: the recording is one sample of what is asked, and the next run will be another.
            rows = rng.integers(size, size=size)[rng.integers(size, size=size)]
            generation = generations[k % len(generations)]
            draws[k] = np.quantile((fixed + generation)[rows], P95) * np.exp(rng.normal(0.0, RUN_TO_RUN))
        return draws


def predict(seen: Seen, changes: Mapping[str, object]) -> Prediction | None:
    """P95 of the total time with these settings changed (dotted names), by replay of the recording."""
    return Replay(seen).predict(changes)


def _prefill_of(model: LatencyModel, prompts: Prompts) -> Floats:
    c0, c1, c2 = model.prefill
    n = prompts.computed
    ms = c0 + c1 * n + c2 * n * (prompts.context - n / 2)
    return np.where(n > 0, ms, 0.0)


def _ratio(model: LatencyModel, before: Prompts, after: Prompts) -> Floats:
    old, new = _prefill_of(model, before), _prefill_of(model, after)
    return np.divide(new, old, out=np.ones_like(old), where=old > 0)


def _tpot_ratio(model: LatencyModel, before: Prompts, after: Prompts) -> Floats:
    if model.tpot is None or sum(model.tpot) <= 0:
        return np.ones_like(before.context)
    a, b = model.tpot
    old = a + b * before.context
    return np.divide(a + b * after.context, old, out=np.ones_like(old), where=old > 0)
