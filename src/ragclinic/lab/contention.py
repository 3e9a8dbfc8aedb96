"""Four tenants on one server: who fills the cache, who waits for it, and what quota and priority change.

Refuted by: light tenants that wait no longer beside a heavy one, or a quota that does not shorten it. Held:
Llama-3-8B on an A100 with a scheduler like vLLM's, 20 minutes of traffic. Varied: the heavy tenant's presence, a
quota of the cache, priorities. Cost: seconds, no hardware. Limit: no numbers were claimed, only that peaks of one
tenant delay the others, so nothing but the direction can be refuted.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ragclinic.lab.experiment import Claim, Experiment, Outcome, Plot, Row
from ragclinic.physics.hardware import named_device
from ragclinic.physics.models import named_model
from ragclinic.physics.precision import kv_type, weight_type
from ragclinic.physics.roofline import step_cost
from ragclinic.physics.simulator import (
    VLLM,
    Arrival,
    Done,
    Server,
    bursts,
    merged,
    percentile,
    poisson,
    simulate,
    spread_lengths,
)

CACHE_BLOCKS = 14_000
"""224,000 tokens of 16-bit cache, 29 GB."""
DURATION_S = 1200.0
HEAVY, LIGHT = "reports", ("helpdesk", "library", "shop")
QUOTA = 0.5
WINDOW_S = 10.0


class Tenant(NamedTuple):
    """One tenant in one variant: its peak share of the cache, its queue and its first token at P95."""

    variant: str
    tenant: str
    requests: int
    peak_share: float
    queue_p95_ms: float
    ttft_p95_ms: float
    preemptions: int


def run(seed: int) -> Outcome:
    """The same light traffic alone, beside a heavy tenant, with a quota, and with priorities."""
    light = list(merged([_light(name, seed + i) for i, name in enumerate(LIGHT)]))
    heavy = list(bursts(24, 120.0, 240, spread_lengths(12_000, 400, 0.3), seed, HEAVY))
    both = list(merged([light, heavy]))
    preferred = [a._replace(priority=int(a.tenant == HEAVY)) for a in both]
    variants = {
        "light tenants alone": (light, None),
        "beside the heavy one": (both, None),
        "with a quota of half the cache": (both, QUOTA),
        "with priority for the light": (preferred, None),
    }
    ends = {name: list(_run(arrivals, share)) for name, (arrivals, share) in variants.items()}
    tenants = [t for name, done in ends.items() for t in _tenants(name, done)]
    rows: list[Row] = [dict(t._asdict()) for t in tenants]
    return Outcome(tuple(rows), _claims(tenants), (_plot(ends["beside the heavy one"]),))


def _light(name: str, seed: int) -> Iterator[Arrival]:
    rate = 0.4
    return poisson(rate, int(rate * DURATION_S), spread_lengths(1200, 120), seed, name)


def _run(arrivals: Iterable[Arrival], share: float | None) -> Iterator[Done]:
    cost = step_cost(named_model("llama-3-8b"), named_device("a100-80g"), kv_type("f16"), weight_type("f16"))
    for event in simulate(Server(VLLM, cost, CACHE_BLOCKS, tenant_share=share), arrivals):
        if isinstance(event, Done):
            yield event


def _tenants(variant: str, done: Sequence[Done]) -> Iterator[Tenant]:
    for tenant in (HEAVY, *LIGHT):
        own = [d for d in done if d.arrival.tenant == tenant]
        if own:
            yield Tenant(
                variant,
                tenant,
                len(own),
                max(share for _, share in _shares(own)),
                percentile([(d.scheduled_s - d.arrival.time_s) * 1000 for d in own], 0.95) or 0.0,
                percentile([d.ttft_ms for d in own], 0.95) or 0.0,
                sum(d.preemptions for d in own),
            )


def _shares(done: Iterable[Done]) -> Iterator[tuple[float, float]]:
    """Time and share of the cache of these requests, at every moment one begins or ends.

    A request counts with all its tokens from its first step on: an upper estimate of what it holds.
    """
    changes: list[tuple[float, int]] = []
    for d in done:
        tokens = d.arrival.prompt_tokens + d.arrival.output_tokens
        changes += [(d.scheduled_s, tokens), (d.end_s, -tokens)]
    held = 0
    for time_s, tokens in sorted(changes):
        held += tokens
        yield time_s, held / (CACHE_BLOCKS * VLLM.block_tokens)


def _claims(tenants: Sequence[Tenant]) -> tuple[Claim, ...]:
    worst: dict[str, float] = defaultdict(float)
    for t in tenants:
        if t.tenant != HEAVY:
            worst[t.variant] = max(worst[t.variant], t.ttft_p95_ms)
    peak = max(t.peak_share for t in tenants if t.tenant == HEAVY and t.variant == "beside the heavy one")
    why = "P95 of the first token of the slowest light tenant"
    return (
        Claim("peak share of the heavy tenant", "%", None, min(1.0, peak) * 100, "its bursts of 24 long prompts"),
        *(Claim(f"first token, {name}", "ms", None, value, why) for name, value in worst.items()),
    )


def _plot(done: Sequence[Done]) -> Plot:
    lines = {}
    for tenant in (HEAVY, *LIGHT):
        peaks: dict[int, float] = {}
        for time_s, share in _shares(d for d in done if d.arrival.tenant == tenant):
            window = int(time_s / WINDOW_S)
            peaks[window] = max(peaks.get(window, 0.0), share)
        lines[tenant] = tuple((w * WINDOW_S, min(1.0, s) * 100) for w, s in sorted(peaks.items()))
    return Plot("contention", "Peak share of the KV cache by tenant", "seconds", "% of the cache", lines)


EXPERIMENT = Experiment(
    id="contention",
    question="What does one tenant with long prompts cost the others, and what do a quota and priorities change?",
    refuted_by="light tenants whose first token is no later beside a heavy one, or a quota that changes nothing",
    run=run,
)
