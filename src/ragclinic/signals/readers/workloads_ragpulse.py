"""RAGPulse: a week of a university's RAG service, requests with the ids of every block of their prompt.

Read: flashserve/RAGPulse @3672232. `0_trace.jsonl` holds requests, `1_` to `5_` the token length of each id; a
block has at most 512 tokens, and what is equal has an equal id. The prompt's order is that of the fields: system
prompt, passages, history, web search, the user's input. The counts of the blocks sum to a little less than
`input_length`: the template's own tokens have no id.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from ragclinic.signals.content import QUESTION_KEY
from ragclinic.signals.readers.fields import items, kind, number, obj, text, whole
from ragclinic.signals.readers.lines import lines
from ragclinic.signals.readers.reader import Origin, Reader, ReadLog, ReadOptions
from ragclinic.signals.readers.workload import WORKLOAD_SIGNALS, relative_ns, request_span, tell
from ragclinic.signals.records import Chunk, Part, PartRole, Record

LOOKUP = "ragpulse"
MAX_IDS = 5_000_000
ROLES: tuple[tuple[str, PartRole], ...] = (
    ("sys_prompt", "system"),
    ("passages_ids", "context"),
    ("history", "history"),
    ("web_search", "context"),
    ("user_input", "question"),
)
_TRACE = re.compile(rb'"hash_ids"\s*:\s*\{[^}]*"passages_ids"')
_LENGTHS = re.compile(
    rb'\A\s*\{"(sys_prompt|passage|history|user_input|web_search)_id"\s*:\s*\d+,\s*"token_length"'
)


def sniff(head: bytes) -> float:
    """Sure where `hash_ids` is an object with passages."""
    return 0.97 if _TRACE.search(head) else 0.0


def sniff_lengths(head: bytes) -> float:
    """Sure where the first row is an id and its token length."""
    return 0.97 if _LENGTHS.match(head) else 0.0


def read(stream: BinaryIO, origin: Origin, log: ReadLog, options: ReadOptions) -> Iterator[Record]:
    """A row is a request."""
    lengths = options.lookups.get(LOOKUP, {})
    for here, line in lines(stream, origin, log):
        try:
            found = list(_request(json.loads(line), here, lengths))
        except (ValueError, TypeError, OverflowError, RecursionError) as error:
            log.reject("unreadable request", here, str(error))
            continue
        log.keep()
        yield from found
    tell(log)
    log.lacks("chunk text", "this trace holds ids of passages, not their text")
    if not lengths:
        log.lacks(
            "prompt parts", "import the whole folder: 1_sys_prompt.jsonl to 5_web_search.jsonl tell the lengths"
        )


def read_lengths(stream: BinaryIO, origin: Origin, log: ReadLog, options: ReadOptions) -> Iterator[Record]:
    """Fills the lengths that requests are looked up in; a row is an id."""
    lengths = options.lookups.setdefault(LOOKUP, {})
    for here, line in lines(stream, origin, log):
        try:
            row = obj(json.loads(line), "row")
            key = next(name for name in row if name.endswith("_id"))
            if len(lengths) >= MAX_IDS:
                raise ValueError(f"more than {MAX_IDS} ids")
            lengths[whole(row, key)] = whole(row, "token_length")
        except (ValueError, TypeError, OverflowError, StopIteration, RecursionError) as error:
            log.reject("unreadable length", here, str(error) or "no id; expected ..._id and token_length")
        else:
            log.skip()
    log.note("token lengths by id, for the requests beside it")
    yield from ()


def _request(row: Any, here: Origin, lengths: Mapping[int, int]) -> Iterator[Record]:
    found = obj(row, "row")
    ids = obj(found.get("hash_ids"), "hash_ids")
    seconds = number(found.get("timestamp"))
    if seconds is None:
        raise ValueError(f"timestamp is {kind(found.get('timestamp'))}; expected seconds")
    asked = [whole({"id": i}, "id") for i in items(ids.get("user_input"))]
    span = request_span(
        here,
        relative_ns(seconds),
        whole(found, "input_length"),
        whole(found, "output_length"),
        more={
            "session.id": text(found, "session_id"),
            QUESTION_KEY: " ".join(map(str, asked)) or None,
        },
    )
    yield span
    passages = [whole({"id": i}, "id") for i in items(ids.get("passages_ids"))]
    for rank, passage in enumerate(passages):
        yield Chunk(span.trace_id, rank, str(passage), tokens=lengths.get(passage))
    yield from _parts(span.trace_id, ids, lengths)


def _parts(trace_id: str, ids: Mapping[str, Any], lengths: Mapping[int, int]) -> Iterator[Part]:
    """One part a block, its id standing for all of its tokens."""
    position = 0
    for field, role in ROLES:
        for rank, value in enumerate(items(ids.get(field))):
            block = whole({"id": value}, "id")
            if block in lengths:
                ranked = rank if field == "passages_ids" else None
                yield Part(trace_id, position, role, lengths[block], token_keys=(block,), rank=ranked)
                position += 1


READER = Reader(
    id="ragpulse",
    versions=("flashserve/RAGPulse @3672232",),
    signals=(*WORKLOAD_SIGNALS, "chunks", "prompt parts", "session"),
    sniff=sniff,
    read=read,
)
LENGTHS_READER = Reader(
    id="ragpulse-lengths",
    versions=("flashserve/RAGPulse @3672232",),
    signals=("token lengths",),
    sniff=sniff_lengths,
    read=read_lengths,
    first=True,
)
