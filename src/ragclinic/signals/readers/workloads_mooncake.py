"""Mooncake: production traces of chat and agents, requests with hashes of the 512-token blocks of their prompt.

Read: kvcache-ai/Mooncake @3b5a594 (`timestamp` in milliseconds). The traces of Qwen-Bailian have the same fields
and a `chat_id`; their blocks are of 16 tokens and their `timestamp` is in seconds.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from ragclinic.signals.readers.fields import items, kind, number, obj, text, whole
from ragclinic.signals.readers.lines import lines
from ragclinic.signals.readers.reader import Origin, Reader, ReadLog, ReadOptions
from ragclinic.signals.readers.workload import WORKLOAD_SIGNALS, relative_ns, request_span, tell
from ragclinic.signals.records import Part, Record

_SNIFF = re.compile(rb'"hash_ids"\s*:\s*\[')


def sniff(head: bytes) -> float:
    """Sure where `hash_ids` is a list and lengths stand beside it."""
    return 0.95 if _SNIFF.search(head) and b'"input_length"' in head and b'"output_length"' in head else 0.0


def read(stream: BinaryIO, origin: Origin, log: ReadLog, _options: ReadOptions) -> Iterator[Record]:
    """A row is a request."""
    for here, line in lines(stream, origin, log):
        try:
            found = list(_request(json.loads(line), here))
        except (ValueError, TypeError, OverflowError, RecursionError) as error:
            log.reject("unreadable request", here, str(error))
            continue
        log.keep()
        yield from found
    tell(log)
    log.lacks("chunks", "this trace holds hashes of the prompt's blocks, not where they came from")


def _request(row: Any, here: Origin) -> Iterator[Record]:
    found = obj(row, "row")
    time = number(found.get("timestamp"))
    if time is None:
        raise ValueError(f"timestamp is {kind(found.get('timestamp'))}; expected a number")
    span = request_span(
        here,
        relative_ns(time if "chat_id" in found else time / 1000),
        whole(found, "input_length"),
        whole(found, "output_length"),
        more={"ragclinic.workload.type": text(found, "type")},
    )
    yield span
    blocks = tuple(whole({"id": i}, "id") for i in items(found.get("hash_ids")))
    if blocks:
        # Which block is instructions and which is history is not told: the whole prompt is one part.
        yield Part(span.trace_id, 0, "template", whole(found, "input_length"), token_keys=blocks)


READER = Reader(
    id="mooncake",
    versions=("kvcache-ai/Mooncake @3b5a594", "Qwen-Bailian"),
    signals=(*WORKLOAD_SIGNALS, "prompt parts"),
    sniff=sniff,
    read=read,
)
