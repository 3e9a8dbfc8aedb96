"""What a recording keeps of what people wrote: the text, salted hashes that still tell repetition, or counts only.

Hashes are keyed with a salt that is drawn for each recording and never written, so that nobody can look a word up.
"""

import hashlib
import json
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from ragclinic.signals.records import AttributeValue, Chunk, Content, Part, Record, Span
from ragclinic.signals.units import units

# Where the question stands, newest generation first; a JSON object holds it under one of `QUESTION_FIELDS`.
QUESTION = (
    "input.value",
    "gen_ai.retrieval.query.text",
    "langfuse.trace.input",
    "langfuse.observation.input",
    "traceloop.entity.input",
    "gen_ai.prompt.0.content",
)
QUESTION_FIELDS = ("question", "query", "input", "user_input", "text", "content", "messages", "inputs", "kwargs")
TEXT_ATTRIBUTES = frozenset(
    {
        *QUESTION,
        "output.value",
        "gen_ai.input.messages",
        "gen_ai.output.messages",
        "gen_ai.system_instructions",
        "langfuse.trace.output",
        "langfuse.observation.output",
        "llm.prompts",
        "llm.choices",
        "reranker.query",
        "traceloop.entity.output",
    }
)
TEXT_PREFIXES = (
    "gen_ai.completion.",
    "gen_ai.prompt.",
    "gen_ai.tool.call.",
    "llm.completions.",
    "llm.input_messages.",
    "llm.output_messages.",
    "llm.prompt_template.",
    "llm.prompts.",
)
QUESTION_KEY = "ragclinic.question.key"

Shingles = Callable[[str], Iterable[str]]


def question_key(question: str) -> str:
    """The question without case, punctuation and white space: equal keys are the same question asked again."""
    return "".join(c for c in question.casefold() if c.isalnum())


def question_text(value: AttributeValue | None) -> str | None:
    """The question in an attribute: as it is, or out of the JSON that frameworks wrap their inputs in."""
    if not isinstance(value, str):
        return None
    if not value.lstrip().startswith(("{", "[")):
        return value
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        return value
    for _ in range(4):  # {"inputs": {"messages": [{"content": ...}]}}
        if isinstance(found, list):
            found = found[-1] if found else None
        if isinstance(found, dict):
            found = next((found[k] for k in QUESTION_FIELDS if k in found), None)
        if isinstance(found, str):
            return found
    return value


@dataclass(frozen=True, slots=True)
class ContentPolicy:
    """Decides what is kept. `shingles` cuts a chunk into the units whose overlap the diagnosis measures."""

    content: Content = "text"
    shingles: Shingles = str.split
    salt: bytes = field(default_factory=lambda: secrets.token_bytes(16), repr=False)

    def apply(self, record: Record) -> Record:
        """The record as it may be written."""
        match record:
            case Chunk():
                return self._chunk(record)
            case Part():
                return self._part(record)
            case Span():
                return self._span(record)
            case _:
                return record

    def _key(self, unit: str) -> int:
        digest = hashlib.blake2b(unit.encode("utf-8", "surrogatepass"), digest_size=8, key=self.salt).digest()
        return int.from_bytes(digest, "big", signed=True)

    def _chunk(self, chunk: Chunk) -> Chunk:
        if self.content == "text" or chunk.text is None:
            return chunk
        if self.content == "off":
            return replace(chunk, text=None, keys=None)
        return replace(chunk, text=None, keys=tuple(sorted({self._key(s) for s in self.shingles(chunk.text)})))

    def _part(self, part: Part) -> Part:
        if self.content == "text":
            return part
        if self.content == "off":
            return replace(part, text=None, token_keys=None)
        pieces: Iterable[object] | None = part.token_keys
        if pieces is None and part.text is not None:
            pieces = units(part.text)
        keys = None if pieces is None else tuple(self._key(str(piece)) for piece in pieces)
        return replace(part, text=None, token_keys=keys, tokens=part.tokens if keys is None else len(keys))

    def _span(self, span: Span) -> Span:
        attributes: dict[str, AttributeValue] = dict(span.attributes)
        if self.content != "text":
            question = question_text(next((attributes[n] for n in QUESTION if n in attributes), None))
            for name in [n for n in attributes if n in TEXT_ATTRIBUTES or n.startswith(TEXT_PREFIXES)]:
                del attributes[name]
            if self.content == "hashed" and question is not None and QUESTION_KEY not in attributes:
                attributes[QUESTION_KEY] = f"{self._key(question_key(question)):x}"
        return replace(span, attributes=attributes)
