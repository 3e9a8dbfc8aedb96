"""The log of SGLang: a line for each prefill batch and every 40th decode batch, retractions, request statistics.

Read: `srt/observability/scheduler_metrics_mixin.py` of 2026 and its forerunner in `srt/managers` (0.4 to
0.5.x). A line is `Prefill batch, #new-seq: 1, ...`; older ones write a dot, and a counter may stand in
brackets. Hybrid models have several pools and print `full token usage` and `swa token usage` or `mamba usage`
instead of `token usage`: the fullest pool limits, so their maximum is recorded as the usage. `#new-token` and
`#cached-token` are of that batch. With tensor parallelism only rank 0 prints; data parallel ranks (`DP1`) are
separate servers.
"""

import re
from collections.abc import Iterator
from typing import BinaryIO

from ragclinic.signals.readers.clock import epoch_ns
from ragclinic.signals.readers.durations import MAX_NS
from ragclinic.signals.readers.finite import MAX_COUNT, count, finite
from ragclinic.signals.readers.lines import lines
from ragclinic.signals.readers.log_common import Found, LineClock, Part, request_spans, trace_id
from ragclinic.signals.readers.reader import Origin, Reader, ReadLog, ReadOptions
from ragclinic.signals.readers.torch_oom import TRIED, samples
from ragclinic.signals.records import AttributeValue, Record, Sample, Span

BATCH = re.compile(r"(?:Prefill|Decode) batch(?: \[\d+\])?[.,] (?P<parts>.*)")
PART = re.compile(r"(?P<key>#?[A-Za-z][\w /().-]*): (?P<value>[^,\s]+)")
RANKS = re.compile(r"\[\d{4}-\d\d-\d\d [\d:]+(?P<ranks>(?: [A-Z]{2,4}\d+)+)\]")
RETRACT = re.compile(r"(?:KV cache pool is full|Decode out of memory happened).*?#retracted_reqs: (?P<count>\d+)")
POOL = re.compile(r"max_total_num_tokens=(?P<tokens>\d+)")
CACHE = re.compile(r"KV Cache is allocated\..*?#tokens: (?P<tokens>\d+)")
CACHE_SIZE = re.compile(r"[KV] size: (?P<size>[\d.]+) GB")
STATISTICS = re.compile(r"(?P<key>queue_duration|forward_duration|start_time)=(?P<value>-?[\d.]+)")
REQUEST = re.compile(r"Req Time Stats\((?P<inside>[^)]*)\)")
INSIDE = re.compile(r"(?P<key>rid|input len|output len|cached_tokens)=(?P<value>[^,]*)")
GIB = 1024.0**3

NAMES = {
    "#running-req": "sglang:num_running_reqs",
    "#queue-req": "sglang:num_queue_reqs",
    "token usage": "sglang:token_usage",
    "full token usage": "sglang:full_token_usage",
    "swa token usage": "sglang:swa_token_usage",
    "mamba usage": "sglang:mamba_usage",
    "gen throughput (token/s)": "sglang:gen_throughput",
    "input throughput (token/s)": "sglang.log.input_throughput",
    "accept len": "sglang:spec_accept_length",
    "accept rate": "sglang:spec_accept_rate",
    "#new-seq": "sglang.log.new_seqs",
    "#new-token": "sglang.log.new_tokens",
    "#cached-token": "sglang.log.cached_tokens",
    "#pending-token": "sglang.log.pending_tokens",
    "#token": "sglang:num_used_tokens",
    "#full token": "sglang:num_used_tokens",
    "#prealloc-req": "sglang.log.prealloc_reqs",
    "#inflight-req": "sglang.log.inflight_reqs",
    "#transfer-req": "sglang.log.transfer_reqs",
    "#retracted-req": "sglang.log.retracted_queue_reqs",
    "cuda graph": "sglang:is_cuda_graph",
}
USAGES = ("full token usage", "swa token usage", "mamba usage")
HEAD = re.compile(rb"(?:Prefill|Decode) batch(?: \[\d+\])?[.,] #")


def sniff(head: bytes) -> float:
    """Sure of a batch line."""
    if HEAD.search(head):
        return 0.95
    return 0.8 if b"KV cache pool is full. Retract" in head or b"max_total_num_tokens=" in head else 0.0


def parse_line(line: str) -> Found | None:
    """The samples of a line, None where it is none of the scheduler's.

    Raises:
        ValueError: a batch line in which a number is none.
    """
    labels = _ranks(line)
    batch = BATCH.search(line)
    if batch is not None:
        return _batch(batch["parts"], labels)
    retract, pool, cache = RETRACT.search(line), POOL.search(line), CACHE.search(line)
    if retract is not None:
        return [("sglang.log.retracted_reqs", float(count(retract["count"])), labels)]
    if cache is not None:
        sizes = [finite(size) for size in CACHE_SIZE.findall(line)]
        return [
            ("sglang:max_total_num_tokens", float(count(cache["tokens"])), labels),
            *([("sglang.log.kv_cache_bytes", sum(sizes) * GIB, labels)] if sizes else []),
        ]
    return None if pool is None else [("sglang:max_total_num_tokens", float(count(pool["tokens"])), labels)]


def parse_request(line: str) -> dict[str, str] | None:
    """The statistics of a finished request, by key; None where the line holds none."""
    found = {m["key"]: m["value"] for m in STATISTICS.finditer(line)}
    if not {"queue_duration", "forward_duration"} <= set(found):
        return None
    request = REQUEST.search(line)
    inside = {} if request is None else {m["key"]: m["value"].strip() for m in INSIDE.finditer(request["inside"])}
    return {**inside, **found}


def read(stream: BinaryIO, origin: Origin, log: ReadLog, _options: ReadOptions) -> Iterator[Record]:
    """Samples of batches and retractions, spans of requests; a row is a line."""
    clock = LineClock(origin, log)
    requests = 0
    for here, line in lines(stream, origin, log):
        clock.see(line)
        request = parse_request(line)
        try:
            found = parse_line(line) if request is None else []
            spans = [] if request is None else _spans(request, origin, requests, clock.time_ns(here))
        except ValueError as error:
            log.reject("broken line", here, str(error))
            continue
        if found is None and not TRIED.search(line):
            log.skip()
            continue
        log.keep()
        requests += request is not None
        yield from spans
        if found or TRIED.search(line):
            time_ns = clock.time_ns(here)
            yield from (Sample(time_ns, name, value, labels) for name, value, labels in found or ())
            yield from samples(line, time_ns)
    if not requests:
        log.lacks("request spans", "start SGLang with --enable-trace, or --log-requests for its statistics")


def _batch(text: str, labels: dict[str, str]) -> Found:
    parts = {found["key"].strip(): found["value"] for found in PART.finditer(text)}
    values = {key: _number(key, value) for key, value in parts.items() if key in NAMES}
    if not values:
        raise ValueError(f"{text[:80]!r}; expected keys such as #running-req")
    usages = [values[key] for key in USAGES if key in values]
    if usages and "token usage" not in values:
        values["token usage"] = max(usages)
    return [(NAMES[key], value, labels) for key, value in values.items()]


def _spans(request: dict[str, str], origin: Origin, number: int, end_ns: int) -> list[Span]:
    queue_ns = round(_number("queue_duration", request["queue_duration"]) * 1e6)
    forward_ns = round(_number("forward_duration", request["forward_duration"]) * 1e6)
    if not (0 <= queue_ns <= MAX_NS and 0 <= forward_ns <= MAX_NS):
        raise ValueError(f"queue {queue_ns / 1e6} ms, forward {forward_ns / 1e6} ms; expected 0 to a week")
    started_s = _number("start_time", request.get("start_time", "0"))
    # Newer versions print a wall clock, older ones a counter since the machine started.
    start_ns = epoch_ns(started_s) if started_s > 1e9 else end_ns - queue_ns - forward_ns
    attributes: dict[str, AttributeValue] = {"gen_ai.operation.name": "text_completion"}
    for key, name in (
        ("rid", "gen_ai.request.id"),
        ("input len", "gen_ai.usage.input_tokens"),
        ("output len", "gen_ai.usage.output_tokens"),
        ("cached_tokens", "gen_ai.usage.cache_read.input_tokens"),
    ):
        if key in request:
            attributes[name] = request[key] if key == "rid" else int(_number(key, request[key]))
    middle, stop = start_ns + queue_ns, start_ns + queue_ns + forward_ns
    parts = [Part("queue", start_ns, middle), Part("generate", middle, stop)]
    return request_spans(trace_id(origin, number), "request", "sglang", start_ns, stop, parts, attributes)


def _ranks(line: str) -> dict[str, str]:
    found = RANKS.search(line)
    if found is None:
        return {}
    return {
        f"{rank.rstrip('0123456789').lower()}_rank": rank.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
        for rank in found["ranks"].split()
    }


def _number(key: str, text: str) -> float:
    if text in ("True", "False"):
        return float(text == "True")
    value = finite(text.rstrip("."))
    if abs(value) > MAX_COUNT:
        raise ValueError(f"{key}: {text[:40]!r}; expected a number that a server can count to")
    return value


READER = Reader(
    id="sglang-log",
    versions=("SGLang 0.4 to 0.5",),
    signals=("kv usage", "queue", "retractions", "prefix hits", "throughput", "out of memory", "request spans"),
    sniff=sniff,
    read=read,
)
