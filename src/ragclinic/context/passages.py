"""The one thing that goes into this room: a passage, as a retriever hands it over."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Passage:
    """One retrieved passage.

    `start` and `end` say which characters of the document `doc` the text is; nothing here trusts them unchecked.
    `score` is the retriever's own, higher is better, on whatever scale.
    """

    id: str
    text: str
    doc: str | None = None
    start: int | None = None
    end: int | None = None
    score: float | None = None
