"""What the compiler gives back: the context, and for every sentence why it is in it or not."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

Why = Literal["kept", "below the cut", "duplicate", "overlap"]

GAP = "\n"
"""Stands where sentences of a passage were left out; a mark like "..." would cost two tokens more each time."""
BETWEEN = "\n\n"
"""Stands between passages."""


class Kept(NamedTuple):
    """Characters `start` to `end` of passage number `passage`, with the best score of the sentences in it."""

    passage: int
    start: int
    end: int
    score: float


@dataclass(frozen=True, slots=True)
class Judged:
    """One sentence and what became of it.

    `tokens` are counted where it is kept and estimated by its words where not. `twin` is the number in
    `Compiled.sentences` of the sentence that this one repeats.
    """

    passage: int
    start: int
    end: int
    tokens: int
    score: float
    why: Why
    twin: int | None = None

    @property
    def kept(self) -> bool:
        """Whether the sentence is in the context."""
        return self.why == "kept"


@dataclass(frozen=True, slots=True)
class Compiled:
    """A compiled context.

    `pieces` are the kept texts, each with the number of the passage it comes from, in reading order; `text` joins
    them. `kept` are their spans in the same order. `sentences` are all sentences, in the order of the passages
    given. `tokens_in` counts the passages as given, `tokens_out` the text.
    """

    pieces: tuple[tuple[str, int], ...]
    kept: tuple[Kept, ...]
    sentences: tuple[Judged, ...]
    tokens_in: int
    tokens_out: int

    @property
    def text(self) -> str:
        """The context as the LLM reads it."""
        return BETWEEN.join(text for text, _ in self.pieces)

    @property
    def mass(self) -> float:
        """Which share of the score of all sentences that repeat none was kept, 0..1; 1 where there is none."""
        fresh = [s for s in self.sentences if s.why not in ("duplicate", "overlap")]
        whole = sum(s.score for s in fresh)
        return sum(s.score for s in fresh if s.kept) / whole if whole > 0 else 1.0
