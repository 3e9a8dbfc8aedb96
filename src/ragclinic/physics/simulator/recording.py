"""A simulation as the records of a recording, so that `diagnose` reads a simulated service like any other."""

from collections.abc import Iterable, Iterator

from ragclinic.physics.simulator.sequence import Done, Gauge
from ragclinic.signals.records import AttributeValue, Sample, Span

NS_PER_S = 1_000_000_000
EPOCH_NS = 1_700_000_000 * NS_PER_S
"""The moment that a simulated clock of zero stands for."""
STAGE = "ragclinic.stage"

GAUGES = {
    "vllm": ("vllm:kv_cache_usage_perc", "vllm:num_requests_running", "vllm:num_requests_waiting"),
    "sglang": ("sglang:token_usage", "sglang:num_running_reqs", "sglang:num_queue_reqs"),
    "tgi": (None, "tgi_batch_current_size", "tgi_queue_size"),
    "llama.cpp": (None, "llamacpp:requests_processing", "llamacpp:requests_deferred"),
}
"""Server -> what it calls its cache usage, its running and its waiting requests."""
COUNTERS = {
    "vllm": ("vllm:num_preemptions_total", "vllm:prefix_cache_queries_total", "vllm:prefix_cache_hits_total"),
    "sglang": ("sglang:num_retracted_requests_total", None, None),
}
KV_USED, KV_TOTAL = "ragclinic.kv.used_tokens", "ragclinic.kv.total_tokens"


def to_records(
    events: Iterable[Done | Gauge], server: str, block_tokens: int, window_tokens: int | None = None
) -> Iterator[Span | Sample]:
    """The spans of every request and the samples of every gauge, under the names the server itself uses."""
    for event in events:
        if isinstance(event, Done):
            yield from _spans(event, window_tokens)
        else:
            yield from _samples(event, server, block_tokens)


def _spans(done: Done, window_tokens: int | None) -> Iterator[Span]:
    arrival = done.arrival
    trace_id = f"{done.number + 1:032x}"
    root_id = f"{done.number * 4 + 1:016x}"
    attributes: dict[str, AttributeValue] = {
        "openinference.span.kind": "CHAIN",
        "ragclinic.time_to_first_byte": done.first_s - arrival.time_s,
        "ragclinic.simulated": True,
    }
    if arrival.tenant:
        attributes["tenant.id"] = arrival.tenant
    if window_tokens is not None:
        attributes["ragclinic.window_tokens"] = window_tokens
    times = (arrival.time_s, done.scheduled_s, done.first_s, done.end_s)
    ns = [EPOCH_NS + round(t * NS_PER_S) for t in times]
    yield Span(trace_id, root_id, None, "rag.request", ns[0], ns[3], "simulator", done.error, attributes)
    if done.error is not None and done.scheduled_s == done.end_s:
        return
    usage: dict[str, AttributeValue] = {
        "gen_ai.usage.input_tokens": arrival.prompt_tokens,
        "gen_ai.usage.output_tokens": arrival.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": done.cached_tokens,
        "gen_ai.request.stream": True,
        "ragclinic.preemptions": done.preemptions,
    }
    for number, stage in enumerate(("queue", "prefill", "decode")):
        own = usage if stage == "prefill" else {}
        yield Span(
            trace_id, f"{done.number * 4 + 2 + number:016x}", root_id, stage, ns[number], ns[number + 1],
            "simulator", None, {STAGE: stage, **own},
        )  # fmt: skip


def _samples(gauge: Gauge, server: str, block_tokens: int) -> Iterator[Sample]:
    time_ns = EPOCH_NS + round(gauge.time_s * NS_PER_S)
    labels = {"engine": str(gauge.replica)}
    usage, running, waiting = GAUGES[server]
    counts = (gauge.preemptions, gauge.prompt_tokens, gauge.cached_tokens)
    values: dict[str | None, float] = {
        usage: gauge.used_blocks / gauge.total_blocks,
        running: float(gauge.running),
        waiting: float(gauge.waiting),
        KV_USED: float(gauge.used_blocks * block_tokens),
        KV_TOTAL: float(gauge.total_blocks * block_tokens),
        **dict(zip(COUNTERS.get(server, ()), map(float, counts), strict=False)),
    }
    for name, value in values.items():
        if name is not None:
            yield Sample(time_ns, name, value, labels)
