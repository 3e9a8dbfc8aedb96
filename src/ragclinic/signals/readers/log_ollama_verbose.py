"""What `ollama run --verbose` prints behind each answer: durations and counts.

Read: `api/types.go: Metrics.Summary` of 2026-08. `prompt eval count` is missing where all of it
was cached by versions before mid-2024, so a missing count is unknown, not zero; the rate is too high on a
cached prompt and is not taken. What total leaves over load, prompt and eval is queue and the rest, and stays
unaccounted. No time is printed: answers are laid one after another.
"""

import re
from collections.abc import Iterator
from typing import BinaryIO

from ragclinic.signals.readers.durations import duration_ns
from ragclinic.signals.readers.finite import count
from ragclinic.signals.readers.lines import lines
from ragclinic.signals.readers.log_common import Part, request_spans, trace_id
from ragclinic.signals.readers.reader import Origin, Reader, ReadLog, ReadOptions
from ragclinic.signals.records import AttributeValue, Record, Span

LINE = re.compile(
    r"(?P<key>total duration|load duration|prompt eval count|prompt eval duration|eval count|eval duration|"
    r"prompt eval rate|eval rate):\s+(?P<value>\S+)(?: token\(s\)| tokens/s)?"
)
STAGES = (("load", "load duration"), ("prefill", "prompt eval duration"), ("decode", "eval duration"))
COUNTS = (("gen_ai.usage.input_tokens", "prompt eval count"), ("gen_ai.usage.output_tokens", "eval count"))


def sniff(head: bytes) -> float:
    """Sure of the block's lines."""
    return 0.9 if b"total duration:" in head and b"eval duration:" in head else 0.0


def parse_line(line: str) -> tuple[str, int] | None:
    """Key and value (nanoseconds, or a count) of a line of the block; None where it is none, or a rate.

    Raises:
        ValueError: a duration or count that is none.
    """
    found = LINE.fullmatch(line.strip())
    if found is None:
        return None
    if found["key"].endswith("rate"):
        return found["key"], 0
    if not found["key"].endswith("count"):
        return found["key"], duration_ns(found["value"])
    return found["key"], count(found["value"])


def read(stream: BinaryIO, origin: Origin, log: ReadLog, _options: ReadOptions) -> Iterator[Record]:
    """Spans of each answer; a row is a line of its block."""
    block: dict[str, int] = {}
    end_ns, number = origin.modified_ns or 0, 0
    for here, line in lines(stream, origin, log):
        try:
            found = parse_line(line)
        except ValueError as error:
            log.reject("broken line", here, str(error))
            continue
        if found is None:
            log.skip()
            continue
        log.keep()
        if found[0] == "total duration" and block:
            number, end_ns = number + 1, end_ns + _total_ns(block)
            yield from _spans(block, origin, number, end_ns)
            block = {}
        block[found[0]] = found[1]
    if block:
        yield from _spans(block, origin, number + 1, end_ns + _total_ns(block))
    log.note("no time is printed: answers were laid one after another")


def _total_ns(block: dict[str, int]) -> int:
    return max(block.get("total duration", 0), sum(block.get(key, 0) for _, key in STAGES))


def _spans(block: dict[str, int], origin: Origin, number: int, end_ns: int) -> list[Span]:
    parts: list[Part] = []
    for stage, key in reversed(STAGES):  # decode ends with the answer, prefill before it, load before that
        stop = parts[-1].start_ns if parts else end_ns
        if key in block:
            parts.append(Part(stage, stop - block[key], stop))
    attributes: dict[str, AttributeValue] = {"gen_ai.operation.name": "chat"}
    attributes |= {name: block[key] for name, key in COUNTS if key in block}
    start_ns = end_ns - _total_ns(block)
    return request_spans(trace_id(origin, number), "chat", "ollama", start_ns, end_ns, parts[::-1], attributes)


READER = Reader(
    id="ollama-verbose",
    versions=("Ollama to 2026-08",),
    signals=("request spans", "model loads"),
    sniff=sniff,
    read=read,
)
