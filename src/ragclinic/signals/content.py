"""What a recording keeps of what people wrote: the text, salted hashes that still tell repetition, or counts only.

Hashes are keyed with a salt that is drawn for each recording and never written, so that nobody can look a word up.
"""

import hashlib
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from ragclinic.signals.records import AttributeValue, Chunk, Content, Part, Record, Span

TEXT_ATTRIBUTES = (
    "input.value",
    "output.value",
    "gen_ai.retrieval.query.text",
    "gen_ai.input.messages",
    "gen_ai.output.messages",
    "gen_ai.system_instructions",
)
QUESTION_KEY = "ragclinic.question.key"

Shingles = Callable[[str], Iterable[str]]


def question_key(question: str) -> str:
    """The question without case, punctuation and white space: equal keys are the same question asked again."""
    return "".join(c for c in question.casefold() if c.isalnum())


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
        if self.content == "off" or part.token_keys is None:
            return replace(part, text=None, token_keys=None)
        return replace(part, text=None, token_keys=tuple(self._key(str(k)) for k in part.token_keys))

    def _span(self, span: Span) -> Span:
        attributes: dict[str, AttributeValue] = dict(span.attributes)
        if self.content != "text":
            question = attributes.get("input.value")
            for name in TEXT_ATTRIBUTES:
                attributes.pop(name, None)
            if self.content == "hashed" and isinstance(question, str) and QUESTION_KEY not in attributes:
                attributes[QUESTION_KEY] = f"{self._key(question_key(question)):x}"
        return replace(span, attributes=attributes)
