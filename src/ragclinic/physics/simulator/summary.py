"""What a simulation comes to: percentiles, rates, and what it ran short of. One pass, a few numbers a request."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ragclinic.physics.simulator.sequence import Done, Gauge


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Milliseconds; None where nothing was measured."""

    p50: float | None
    p95: float | None


@dataclass(frozen=True, slots=True)
class Summary:
    """One simulation in numbers. `queue_share` and the others are shares of the requests' whole time, 0..1."""

    requests: int
    errors: int
    duration_s: float
    ttft_ms: Percentiles
    tpot_ms: Percentiles
    total_ms: Percentiles
    preemptions: int
    cached_share: float
    queue_share: float
    prefill_share: float
    peak_usage: float
    peak_running: int
    output_tokens_per_s: float


def percentile(values: Sequence[float], share: float) -> float | None:
    """The value at this share of the sorted values, interpolated as NumPy and DuckDB do; None of none."""
    if not values:
        return None
    ordered = sorted(values)
    at = share * (len(ordered) - 1)
    low = math.floor(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def summarise(events: Iterable[Done | Gauge]) -> Summary:
    """The summary of a stream of ends and gauges."""
    ttft: list[float] = []
    tpot: list[float] = []
    total: list[float] = []
    errors = preemptions = prompt = cached = output = running = 0
    queue = prefill = whole = peak = end_s = 0.0
    start_s = math.inf
    for event in events:
        if isinstance(event, Gauge):
            peak = max(peak, event.used_blocks / event.total_blocks)
            running = max(running, event.running)
            continue
        arrival = event.arrival
        start_s, end_s = min(start_s, arrival.time_s), max(end_s, event.end_s)
        preemptions += event.preemptions
        if event.error is not None:
            errors += 1
            continue
        ttft.append(event.ttft_ms)
        total.append(event.total_ms)
        if arrival.output_tokens > 1:
            tpot.append(event.tpot_ms)
        prompt += arrival.prompt_tokens
        cached += event.cached_tokens
        output += arrival.output_tokens
        queue += event.scheduled_s - arrival.time_s
        prefill += event.first_s - event.scheduled_s
        whole += event.end_s - arrival.time_s
    duration = end_s - start_s if ttft or errors else 0.0
    return Summary(
        requests=len(ttft) + errors,
        errors=errors,
        duration_s=duration,
        ttft_ms=_percentiles(ttft),
        tpot_ms=_percentiles(tpot),
        total_ms=_percentiles(total),
        preemptions=preemptions,
        cached_share=cached / prompt if prompt else 0.0,
        queue_share=queue / whole if whole else 0.0,
        prefill_share=prefill / whole if whole else 0.0,
        peak_usage=peak,
        peak_running=running,
        output_tokens_per_s=output / duration if duration else 0.0,
    )


def _percentiles(values: Sequence[float]) -> Percentiles:
    return Percentiles(percentile(values, 0.5), percentile(values, 0.95))
