"""What a setting comes to under a load, and the load at which its objective breaks and why."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ragclinic.physics.plan.setting import Setting
from ragclinic.physics.roofline import prefill_ms
from ragclinic.physics.simulator import (
    Arrival,
    Router,
    Server,
    Summary,
    faster,
    fixed_lengths,
    named_router,
    percentile,
    poisson,
    simulate,
    summarise,
)

REQUESTS = 240
"""Requests of one simulated load: enough for a P95 of twelve, few enough for an answer within a second."""
SEARCH_FACTOR = 1.5
SEARCH_HALVINGS = 3
"""The breaking load is bracketed by this factor and halved so often: within 5 %."""
LEAST_SHARE = 1 / 64
"""Loads below this share of what prefill alone allows are no loads: the objective then breaks at once."""
FULL_USAGE = 0.95
MOSTLY, SELDOM = 0.75, 0.05


@dataclass(frozen=True, slots=True)
class Break:
    """The load at which the objective breaks. `requests_per_s` is 0 where it breaks without any load, None where
    no load breaks it."""

    requests_per_s: float | None
    why: str


@dataclass(frozen=True, slots=True)
class Load:
    """Requests at any mean rate a second; `prompt_tokens` is their mean length, `long_tokens` its P95."""

    at: Callable[[float], Iterable[Arrival]]
    rate_per_s: float
    prompt_tokens: int
    long_tokens: int


def even_load(setting: Setting, requests: int = REQUESTS, seed: int = 0) -> Load:
    """The load of the setting's users: independent, all prompts of the asked length."""
    lengths = fixed_lengths(setting.prompt_tokens, setting.output_tokens)
    return Load(
        at=lambda rate: poisson(rate, requests, lengths, seed),
        rate_per_s=setting.rate_per_s,
        prompt_tokens=setting.prompt_tokens,
        long_tokens=setting.prompt_tokens,
    )


def trace_load(trace: Sequence[Arrival]) -> Load:
    """A trace of at least two requests in order of time, sped up or slowed down to any rate."""
    span_s = trace[-1].time_s - trace[0].time_s
    rate_per_s = (len(trace) - 1) / span_s if span_s else float(len(trace))
    prompts = [a.prompt_tokens for a in trace]
    return Load(
        at=lambda rate: faster(trace, rate / rate_per_s),
        rate_per_s=rate_per_s,
        prompt_tokens=round(sum(prompts) / len(prompts)),
        long_tokens=round(percentile(prompts, 0.95) or 1),
    )


def under_load(
    setting: Setting, server: Server, arrivals: Iterable[Arrival], router: str = "least-loaded"
) -> Summary:
    """The simulation of these requests on the setting's replicas."""
    route: Router = named_router(router)
    return summarise(simulate(server, arrivals, setting.replicas, route, sample_s=0.5))


def breaking_load(setting: Setting, server: Server, load: Load, router: str = "least-loaded") -> Break:
    """The highest rate that keeps the objective, and what runs short just above it."""
    chunk = server.profile.step_tokens
    long_ms = prefill_ms(server.cost, load.long_tokens, chunk_tokens=chunk)
    if long_ms > setting.slo_ms:
        return Break(0.0, f"one prompt of {load.long_tokens:,} tokens alone takes {long_ms:,.0f} ms of prefill")
    mean_ms = prefill_ms(server.cost, load.prompt_tokens, chunk_tokens=chunk)
    possible = 1000 / mean_ms * setting.replicas  # what prefill alone allows

    def keeps(rate: float) -> bool:
        return _keeps(setting, under_load(setting, server, load.at(rate), router))

    def broken(rate: float) -> str:
        busy_share = rate / possible
        return _why(server, under_load(setting, server, load.at(rate), router), busy_share, mean_ms)

    low = high = possible / 2
    if keeps(low):
        while keeps(high := low * SEARCH_FACTOR):
            low = high
            if low > 4 * possible:
                return Break(None, f"not up to {low:,.1f} requests a second: most of each prompt is cached")
    else:
        while not keeps(low := high / SEARCH_FACTOR):
            high = low
            if high < possible * LEAST_SHARE:
                return Break(0.0, broken(high))
    for _ in range(SEARCH_HALVINGS):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return Break(low, broken(high))


def _keeps(setting: Setting, summary: Summary) -> bool:
    p95 = summary.ttft_ms.p95
    return p95 is not None and p95 <= setting.slo_ms and summary.errors == 0


def _why(server: Server, summary: Summary, busy_share: float, prefill_each_ms: float) -> str:
    """What runs short at a rate that breaks the objective, the surest sign first."""
    if summary.errors:
        return f"{summary.errors} of {summary.requests} requests are longer than the cache holds for one"
    if summary.preemptions:
        return f"the KV cache is full: {summary.preemptions} preemptions in {summary.requests} requests"
    if summary.peak_usage >= FULL_USAGE and server.profile.prefix != "slot":
        return f"the KV cache is full ({summary.peak_usage:.0%}): requests wait for blocks"
    if summary.peak_running >= server.profile.sequences:
        return f"the limit of {server.profile.sequences} sequences at once is reached while the cache has room"
    if busy_share > MOSTLY:
        return f"prefill: each prompt takes {prefill_each_ms:,.0f} ms, together {busy_share:.0%} of the time"
    if busy_share < SELDOM:
        return f"a prompt takes {prefill_each_ms:,.0f} ms by itself: two that come together break the objective"
    return (
        f"prompts and answers share the steps: prefill alone is busy {busy_share:.0%} of the time, up to "
        f"{summary.peak_running} answers under way slow each step"
    )
