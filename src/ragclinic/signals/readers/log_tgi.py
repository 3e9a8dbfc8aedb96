"""The router log of text-generation-inference: a `Success` line for each request, as text or as JSON.

Read: `router/src/server.rs` of TGI 3.3.6 (in maintenance); a log of 2024-12. The span of the line holds the
times in Rust's Debug form: validation, queue, inference and time per token; inference is prefill and decode
together, so neither the first token nor the cache is told. The number of output tokens follows from inference
over time per token. The line is printed when the answer is complete.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from ragclinic.signals.readers.clock import find_time
from ragclinic.signals.readers.durations import duration_ns
from ragclinic.signals.readers.lines import lines
from ragclinic.signals.readers.log_common import Part, request_spans, trace_id
from ragclinic.signals.readers.reader import Origin, Reader, ReadLog, ReadOptions
from ragclinic.signals.readers.torch_oom import TRIED, samples
from ragclinic.signals.records import AttributeValue, Record, Span

FIELDS = ("total_time", "validation_time", "queue_time", "inference_time", "time_per_token")
FIELD = re.compile(
    r"\b(?P<key>total_time|validation_time|queue_time|inference_time|time_per_token)=\"(?P<value>[^\"]*)\""
)
SPAN = re.compile(r"\b(?P<name>generate|generate_stream|compat_generate|chat_completions|completions|vertex\w*)\{")
ANSI = re.compile(r"\x1b\[[0-9;]*m")
HEAD = re.compile(rb"text_generation_(?:router|launcher)|total_time=\"[^\"]*\" validation_time=")


def sniff(head: bytes) -> float:
    """Sure of the router's name or of its fields."""
    return 0.95 if HEAD.search(head) else 0.0


def parse_line(line: str) -> dict[str, str] | None:
    """The times of a request as printed, with the name of its span; None where the line tells none.

    Raises:
        ValueError: a line of JSON that names the router and is broken.
    """
    if line.lstrip().startswith("{"):
        return _json(line)
    found = {match["key"]: match["value"] for match in FIELD.finditer(line)}
    if not {"total_time", "inference_time"} <= set(found):
        return None
    span = SPAN.search(line)
    return {**found, "name": span["name"] if span is not None else "generate"}


def read(stream: BinaryIO, origin: Origin, log: ReadLog, _options: ReadOptions) -> Iterator[Record]:
    """Spans of each request; a row is a line."""
    requests = 0
    for here, raw in lines(stream, origin, log):
        line = ANSI.sub("", raw)
        try:
            found = parse_line(line)
            spans = [] if found is None else _spans(found, line, here, requests + 1, log)
        except ValueError as error:
            log.reject("broken line", here, str(error))
            continue
        if found is None and not TRIED.search(line):
            log.skip()
            continue
        log.keep()
        requests += bool(spans)
        yield from spans
        if TRIED.search(line):
            yield from samples(line, find_time(line, here, log) or origin.modified_ns or 0)
    log.lacks("first token", "TGI prints none: send OTLP with --otlp-endpoint, or read it at the client")
    log.lacks("kv usage", "TGI has none")


def _json(line: str) -> dict[str, str] | None:
    try:
        event: Any = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{line[:60]!r} ({error}); expected a line of JSON") from error
    if not isinstance(event, dict):
        return None
    span = event.get("span")
    source: Mapping[str, Any] = span if isinstance(span, dict) and "total_time" in span else event
    found = {key: value for key in FIELDS if isinstance(value := source.get(key), str)}
    if not {"total_time", "inference_time"} <= set(found):
        return None
    return {**found, "name": str(source.get("name", "generate")), "time": str(event.get("timestamp", ""))}


def _spans(found: Mapping[str, str], line: str, here: Origin, number: int, log: ReadLog) -> list[Span]:
    times = {key: duration_ns(found[key]) for key in FIELDS if key in found}
    end_ns = find_time(found.get("time") or line, here, log)
    if end_ns is None:
        raise ValueError("no time in the line; expected one as the router prints it")
    start_ns = end_ns - times["total_time"]
    inference_ns = end_ns - times["inference_time"]
    queue_ns = inference_ns - times.get("queue_time", 0)
    parts = [Part("generate", max(start_ns, inference_ns), end_ns)]
    if "queue_time" in times:
        parts.insert(0, Part("queue", max(start_ns, queue_ns), max(start_ns, inference_ns)))
    if "validation_time" in times:
        stop = max(start_ns, queue_ns)
        parts.insert(0, Part("validation", max(start_ns, stop - times["validation_time"]), stop))
    attributes: dict[str, AttributeValue] = {"gen_ai.operation.name": "chat"}
    if times.get("time_per_token"):
        attributes["gen_ai.usage.output_tokens"] = round(times["inference_time"] / times["time_per_token"])
    return request_spans(trace_id(here, number), found["name"], "tgi", start_ns, end_ns, parts, attributes)


READER = Reader(
    id="tgi-log",
    versions=("text-generation-inference 2.x to 3.3.6",),
    signals=("request spans", "queue", "out of memory"),
    sniff=sniff,
    read=read,
)
