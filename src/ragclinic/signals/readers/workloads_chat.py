"""Chat transcripts like ShareGPT's: conversations of which each answer is a request with all that was said before.

Read: ShareGPT_V3 (`conversations` of `from` and `value`) and the form of OpenAI's fine-tuning files (`messages` of
`role` and `content`), as one list or one conversation a line. They hold no times: requests are put a second apart.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from ragclinic.signals.content import QUESTION_KEY, question_key
from ragclinic.signals.readers.elements import elements
from ragclinic.signals.readers.fields import items, kind, obj, text
from ragclinic.signals.readers.reader import Origin, Reader, ReadLog, ReadOptions
from ragclinic.signals.readers.workload import relative_ns, request_span, tell
from ragclinic.signals.records import Part, PartRole, Record
from ragclinic.signals.units import units

ASSISTANT = frozenset({"gpt", "assistant", "bing", "chatgpt", "bard", "model"})
USER = frozenset({"human", "user"})
MAX_HISTORY_CHARACTERS = 64 * 1024
"""A longer history is counted and not kept: each turn would store all the ones before it once more."""
_SHAREGPT = re.compile(rb'"conversations"\s*:\s*\[\s*(\{\s*"(from|value)"|\])')
_MESSAGES = re.compile(rb'\A\s*\[?\s*\{\s*("id"\s*:\s*"[^"]*"\s*,\s*)?"messages"\s*:\s*\[\s*\{\s*"role"')


def sniff(head: bytes) -> float:
    """Sure of `conversations` of `from` and `value`; less so of lists of messages."""
    if _SHAREGPT.search(head):
        return 0.9
    return 0.8 if _MESSAGES.match(head) else 0.0


def read(stream: BinaryIO, origin: Origin, log: ReadLog, _options: ReadOptions) -> Iterator[Record]:
    """A row is an answer; a conversation without one is passed over."""
    seconds = 0
    for element in elements(stream, origin, log, {""}):
        here = origin.at(element.line)
        try:
            said = _said(element.value)
        except (ValueError, TypeError) as error:
            log.reject("unreadable conversation", here, str(error))
            continue
        answers = [i for i, (role, _) in enumerate(said) if role in ASSISTANT and i]
        if not answers:
            log.skip()
        for turn, index in enumerate(answers):
            log.keep()
            yield from _request(said, index, here, turn, relative_ns(float(seconds)))
            seconds += 1
    tell(log)
    log.note("token counts are estimated from the text")
    log.lacks("arrivals", "chat transcripts hold no times: requests were put a second apart")


def _said(value: Any) -> list[tuple[str, str]]:
    found = obj(value, "conversation")
    told = found.get("conversations", found.get("messages"))
    if not isinstance(told, list):
        raise ValueError(f"conversations is {kind(told)}; expected a list")
    return [
        ((text(m, "from", "role") or "").lower(), text(m, "value", "content") or "")
        for m in items(told)
        if isinstance(m, Mapping)
    ]


def _request(said: list[tuple[str, str]], index: int, here: Origin, turn: int, time_ns: int) -> Iterator[Record]:
    parts = list(_parts(said[:index]))
    question = next((words for role, words in reversed(said[:index]) if role in USER), None)
    span = request_span(
        here,
        time_ns,
        sum(tokens for _, tokens, _ in parts),
        len(units(said[index][1])),
        part=turn,
        more={
            "session.id": str(here),
            "input.value": question,
            QUESTION_KEY: question_key(question) if question else None,
        },
    )
    yield span
    for position, (role, tokens, words) in enumerate(parts):
        yield Part(span.trace_id, position, role, tokens, text=words)


def _parts(before: list[tuple[str, str]]) -> Iterator[tuple[PartRole, int, str | None]]:
    """System prompt, all that was said, and the last question: role, tokens, text."""
    system = "\n".join(words for role, words in before if role == "system")
    rest = [(role, words) for role, words in before if role != "system"]
    history = "\n".join(words for _, words in rest[:-1])
    kept = history if len(history) <= MAX_HISTORY_CHARACTERS else None
    named: tuple[tuple[PartRole, str, str | None], ...] = (
        ("system", system, system),
        ("history", history, kept),
        ("question", rest[-1][1] if rest else "", rest[-1][1] if rest else ""),
    )
    for role, words, text_kept in named:
        if words:
            yield role, len(units(words)), text_kept


READER = Reader(
    id="chat-transcripts",
    versions=("ShareGPT_V3", "OpenAI fine-tuning JSONL"),
    signals=("prompt tokens", "output tokens", "prompt parts", "session"),
    sniff=sniff,
    read=read,
)
