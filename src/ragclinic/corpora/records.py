"""What a demo corpus is made of."""

from dataclasses import dataclass
from typing import Literal

Lang = Literal["en", "zh"]


@dataclass(frozen=True, slots=True)
class Document:
    """One page of a corpus; `text` is what is cut into chunks."""

    id: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Question:
    """A question as somebody types it, with the exact span of the corpus that answers it.

    `evidence` stands character for character in the text of the document `doc`; `also` are other spans of the
    corpus that answer it alone, where it says the same thing twice. `session` names the chat that the question
    belongs to, `same_as` the earlier question that this one repeats or rephrases.
    """

    id: str
    text: str
    evidence: str
    doc: str
    answer: str
    session: str
    same_as: str | None
    also: tuple[str, ...] = ()

    @property
    def spans(self) -> tuple[str, ...]:
        """Every span that answers the question."""
        return (self.evidence, *self.also)


@dataclass(frozen=True, slots=True)
class Corpus:
    """Documents and the questions to ask of them, in the order they are asked.

    `skipped` are the ids of questions whose evidence this corpus does not have: the English one changes a little
    from one Python to the next.
    """

    lang: Lang
    documents: tuple[Document, ...]
    questions: tuple[Question, ...]
    skipped: tuple[str, ...]
