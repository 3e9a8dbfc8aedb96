"""The log of vLLM: engine statistics every 10 s, preemptions, sizes of the cache, kernels compiled while serving.

Read: `vllm/v1/metrics/loggers.py` of 2025-03, 2025-09 and 2026 (0.8 to 0.32) and the V0 `engine/metrics.py`
(0.2 to 0.8). Parsed by key, not by position: optional parts move the others. What a number counts:

- prompt throughput counts a prompt once, when its first token comes out (so it says 0.0 during a long prefill
and then
  jumps), whole up to 2025 and without its cached part since; work thrown away by a preemption is never in it.
- `Preemptions:` is what happened since the line before, stands there only when there were any, and only since late
  2025; V0 prints the total in a line of its own.
- `Waiting:` includes the deferred ones. With several engines in one line the KV usage is their mean.

Names are those of vLLM's own metrics where the log says the same as they do.
"""

import re
from collections.abc import Iterator
from typing import BinaryIO

from ragclinic.signals.readers.finite import finite
from ragclinic.signals.readers.log_common import Found, read_samples
from ragclinic.signals.readers.reader import Origin, Reader, ReadLog, ReadOptions
from ragclinic.signals.records import Record

NUMBER = r"(?P<value>-?[\d.,]+|nan|NaN)"
ENGINE = re.compile(r"Engine (?P<engine>\d+): ")
AGGREGATED = re.compile(r"(?P<engines>\d+) Engines Aggregated: ")
STATISTICS = re.compile(r"Avg prompt throughput: |(?<!External )(?<!MM )Prefix cache hit rate: (?:GPU|\d)")

# What stands before the number -> name, factor, further labels; newest wording first.
PARTS: tuple[tuple[re.Pattern[str], str, float, dict[str, str]], ...] = tuple(
    (re.compile(text + r"\s*" + NUMBER), name, factor, labels)
    for text, name, factor, labels in (
        ("Avg prompt throughput:", "vllm:avg_prompt_throughput_toks_per_s", 1.0, {}),
        ("Avg generation throughput:", "vllm:avg_generation_throughput_toks_per_s", 1.0, {}),
        ("Running:", "vllm:num_requests_running", 1.0, {}),
        ("(?:Waiting|Pending):", "vllm:num_requests_waiting", 1.0, {}),
        ("Deferred:", "vllm:num_requests_waiting_by_reason", 1.0, {"reason": "deferred"}),
        ("Swapped:", "vllm:num_requests_swapped", 1.0, {}),
        ("Preemptions:", "vllm.log.preemptions", 1.0, {}),
        ("GPU KV cache usage:", "vllm:kv_cache_usage_perc", 0.01, {}),
        ("CPU KV cache usage:", "vllm:cpu_cache_usage_perc", 0.01, {}),
        ("(?<!External )Prefix cache hit rate:(?: GPU:)?", "vllm.log.prefix_cache_hit_rate", 0.01, {}),
        ("External prefix cache hit rate:", "vllm.log.external_prefix_cache_hit_rate", 0.01, {}),
        ("MM cache hit rate:", "vllm.log.mm_cache_hit_rate", 0.01, {}),
        ("Corrupted:", "vllm.log.corrupted_reqs", 1.0, {}),
    )
)
GIB = 1024.0**3
# Lines that say one thing each.
EVENTS: tuple[tuple[re.Pattern[str], str, float], ...] = (
    (re.compile(rf"total_num_cumulative_preemption={NUMBER}"), "vllm:num_preemptions_total", 1.0),
    (re.compile(rf"Available KV cache memory: {NUMBER} GiB"), "vllm.log.kv_cache_bytes", GIB),
    (re.compile(rf"GPU KV cache size: {NUMBER} tokens"), "vllm.log.kv_cache_tokens", 1.0),
    (
        re.compile(rf"Maximum concurrency for [\d,]+ tokens per request: {NUMBER}x"),
        "vllm.log.max_concurrency",
        1.0,
    ),
    (re.compile(rf"# (?:GPU|cuda) blocks: {NUMBER}"), "vllm.log.gpu_blocks", 1.0),
    (re.compile(rf"max_num_batched_tokens=?:? ?{NUMBER}"), "vllm.log.max_num_batched_tokens", 1.0),
    (re.compile(rf"init engine \(.*?\) took {NUMBER} s"), "vllm.log.init_engine_s", 1.0),
    (re.compile(rf"\(compilation: {NUMBER} s\)"), "vllm.log.compilation_s", 1.0),
    (re.compile(rf"Model loading took {NUMBER} Gi?B"), "vllm.log.model_bytes", GIB),
    (re.compile(rf"Model loading took .*?and {NUMBER} seconds"), "vllm.log.model_load_s", 1.0),
    (re.compile(rf"Avg Draft acceptance rate: {NUMBER}%"), "vllm.log.spec_decode_acceptance_rate", 0.01),
)
TELLING = (  # a line without one of these words is none of ours: cheap to see
    "throughput:", "cache", "preemption=", "blocks:", "init engine", "Model loading", "JIT compilation",
    "quantization is not fully", "max_num_batched_tokens", "acceptance rate",
)  # fmt: skip
JIT = re.compile(r"JIT compilation during inference: (?P<kernel>[^.\s]+)")
UNOPTIMISED = re.compile(r"(?P<method>\w+) quantization is not fully optimized yet")
HEAD = re.compile(rb"GPU KV cache size: |# GPU blocks: |total_num_cumulative_preemption|vLLM API server version")


def sniff(head: bytes) -> float:
    """Sure of a statistics line; nearly so of other lines of the engine."""
    if b"Avg prompt throughput: " in head:
        return 0.95
    return 0.8 if HEAD.search(head) else 0.0


def parse_line(line: str) -> Found | None:
    """The samples of a line, None where it is no line of the engine.

    Raises:
        ValueError: a statistics line in which a number is none.
    """
    if not any(word in line for word in TELLING):
        return None
    labels = _engine(line)
    found: Found = []
    if STATISTICS.search(line):
        for pattern, name, factor, more in PARTS:
            part = pattern.search(line)
            if part is not None:
                found.append((name, _number(part["value"]) * factor, {**labels, **more}))
        if not found:
            raise ValueError(f"{line[-80:]!r}; expected numbers behind the keys of a statistics line")
        return found
    for pattern, name, factor in EVENTS:
        event = pattern.search(line)
        if event is not None:
            found.append((name, _number(event["value"]) * factor, labels))
    jit, slow = JIT.search(line), UNOPTIMISED.search(line)
    if jit is not None:
        found.append(("vllm.log.jit_compilations", 1.0, {**labels, "kernel": jit["kernel"]}))
    if slow is not None:
        found.append(("vllm.log.quantization_unoptimized", 1.0, {"method": slow["method"].lower()}))
    return found or None


def read(stream: BinaryIO, origin: Origin, log: ReadLog, _options: ReadOptions) -> Iterator[Record]:
    """Some samples a line; a row is a line."""
    counted = False
    for sample in read_samples(stream, origin, log, parse_line):
        if "engines" in sample.labels:
            log.note("KV usage of several engines in one line is their mean: a full one may hide behind it")
        counted = counted or "preemptions" in sample.name
        yield sample
    if not counted:
        log.lacks("preemptions", "scrape /metrics: vllm:num_preemptions_total (older logs never print them)")
    log.lacks("request spans", "start vLLM with --otlp-traces-endpoint")


def _engine(line: str) -> dict[str, str]:
    one, all_ = ENGINE.search(line), AGGREGATED.search(line)
    if one is not None:
        return {"engine": str(int(one["engine"]))}
    return {} if all_ is None else {"engine": "all", "engines": all_["engines"]}


def _number(text: str) -> float:
    return finite(text.rstrip(".,").replace(",", ""))


READER = Reader(
    id="vllm-log",
    versions=("vLLM V0 0.2 to 0.8", "vLLM V1 0.8 to 0.32"),
    signals=(
        "kv usage",
        "queue",
        "preemptions",
        "prefix hits",
        "throughput",
        "out of memory",
        "kernel compilation",
    ),
    sniff=sniff,
    read=read,
)
