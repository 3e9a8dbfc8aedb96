"""The footer that RAGFlow writes behind an answer's prompt: how long each of its steps took.

Read: `api/db/services/dialog_service.py` of 2025. Newer: `## Time elapsed:` with a line a step,
in the order in which they run; `Query refinement(LLM)` is a call of the model before the search, and its
retrieval holds the embedding of the question. Older: one line `Refine Question / Keywords / Retrieval / LLM:
... ms`. No time of day is printed: answers are laid one after another.
"""

import re
from collections.abc import Iterator, Mapping
from typing import BinaryIO

from ragclinic.signals.readers.lines import lines
from ragclinic.signals.readers.log_common import Part, request_spans, trace_id
from ragclinic.signals.readers.reader import Origin, Reader, ReadLog, ReadOptions
from ragclinic.signals.records import AttributeValue, Record, Span

LINE = re.compile(r"(?:[-*]\s+)?(?P<step>[A-Z][\w ()]*?)\s*:\s*(?P<value>[\d.]+)\s*(?P<unit>ms|s)?")
TITLE = re.compile(r"#*\s*(?:Time )?[Ee]lapsed:?\s*")
TOKENS = "Generated tokens(approximately)"
OLD_PIECE = re.compile(r"(?P<step>Refine Question|Keywords|Retrieval|LLM)\s*:\s*(?P<value>[\d.]+)\s*ms")
MAX_MS = 7 * 86_400_000

# Step -> stage and what is known of it, in the order in which they run; newest wording first.
CALL: Mapping[str, AttributeValue] = {"gen_ai.operation.name": "chat"}
STEPS: Mapping[str, tuple[str, Mapping[str, AttributeValue]]] = {
    "Check LLM": ("check", {}),
    "Check Langfuse tracer": ("check", {}),
    "Bind models": ("bind", {}),
    "Bind embedding": ("bind", {}),
    "Bind LLM": ("bind", {}),
    "Tune question": ("generate", CALL),
    "Query refinement(LLM)": ("generate", CALL),
    "Multi-turn optimization": ("generate", CALL),
    "Refine Question": ("generate", CALL),
    "Keywords": ("generate", CALL),
    "Generate keyword": ("generate", CALL),
    "Retrieval": ("search", {"gen_ai.operation.name": "retrieval"}),
    "Generate answer": ("generate", CALL),
    "LLM": ("generate", CALL),
}
TOTAL = "Total"


def sniff(head: bytes) -> float:
    """Sure of the steps' names."""
    if b"Query refinement(LLM):" in head or (b"Retrieval:" in head and b"Generate answer:" in head):
        return 0.9
    return 0.9 if b"Refine Question" in head and b"Retrieval" in head else 0.0


def parse_line(line: str) -> list[tuple[str, float]] | None:
    """The steps of a line with their milliseconds (a count for tokens); None where it is none of the footer's.

    Raises:
        ValueError: a step that took no time a clock could show.
    """
    text = line.strip()
    pieces = OLD_PIECE.findall(text)
    if len(pieces) > 1:
        return [(step, _ms(value)) for step, value in pieces]
    found = LINE.fullmatch(text)
    if found is None or (found["step"] not in STEPS and found["step"] not in (TOTAL, TOKENS)):
        return None
    if found["step"] == TOKENS:
        return [(TOKENS, _ms(found["value"]))]
    return [(found["step"], _ms(found["value"]) * (1000 if found["unit"] == "s" else 1))]


def read(stream: BinaryIO, origin: Origin, log: ReadLog, _options: ReadOptions) -> Iterator[Record]:
    """Spans of each answer; a row is a line."""
    block: dict[str, float] = {}
    end_ns, number = origin.modified_ns or 0, 0
    for here, line in lines(stream, origin, log):
        try:
            found = parse_line(line)
        except ValueError as error:
            log.reject("broken line", here, str(error))
            continue
        if found is None:
            log.skip()
        else:
            log.keep()
        steps = [step for step, _ in found or ()]
        starts_anew = TITLE.fullmatch(line.strip()) is not None or any(step in block for step in steps)
        if starts_anew and block:
            number, end_ns = number + 1, end_ns + _total_ns(block)
            yield from _spans(block, origin, number, end_ns)
            block = {}
        block.update(found or ())
    if _total_ns(block):
        yield from _spans(block, origin, number + 1, end_ns + _total_ns(block))
    log.note("no time of day is printed: answers were laid one after another")


def _ms(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"{text!r}; expected milliseconds") from None
    if not 0 <= value < MAX_MS:
        raise ValueError(f"{text!r} ms; expected less than a week")
    return value


def _total_ns(block: Mapping[str, float]) -> int:
    steps = sum(ms for step, ms in block.items() if step in STEPS)
    return round(max(block.get(TOTAL, 0.0), steps) * 1e6)


def _spans(block: Mapping[str, float], origin: Origin, number: int, end_ns: int) -> list[Span]:
    start_ns = end_ns - _total_ns(block)
    parts: list[Part] = []
    position = start_ns
    for step, (stage, attributes) in STEPS.items():
        if step not in block:
            continue
        stop = min(position + round(block[step] * 1e6), end_ns)
        more = {**attributes, "ragflow.step": step}
        if TOKENS in block and step in ("Generate answer", "LLM"):
            more["gen_ai.usage.output_tokens"] = round(block[TOKENS])
        parts.append(Part(stage, position, stop, more))
        position = stop
    return request_spans(trace_id(origin, number), "chat", "ragflow", start_ns, end_ns, parts, {})


READER = Reader(
    id="ragflow-footer",
    versions=("RAGFlow of 2025", "its older one-line footer"),
    signals=("request spans", "stages"),
    sniff=sniff,
    read=read,
)
