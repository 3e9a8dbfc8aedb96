"""The answer cache: a question that was answered is not answered again, within one tenant and one index state.

Every part of the key is a field of its own type: a tenant cannot spell its way into another's entries, and an
answer of an older index, model or prompt can never be found again. A question that leans on what was said before
("and why is *that*?") is not kept, since the same words mean something else in another conversation.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple, Protocol

from ragclinic.errors import MissingExtra

MIN_UNITS = 3
"""Words (or pairs of CJK characters) below which a question is taken to lean on the conversation."""
LEANS_EN = re.compile(
    r"\b(it|its|that|this|these|those|they|them|their|he|she|him|her|above|previous|earlier|again|former|latter)\b",
    re.IGNORECASE,
)
LEANS_ZH = re.compile(r"它|他们|她|这个|那个|这些|那些|上面|刚才|前面|之前说|上述|此外呢|那么呢|那呢")
CJK = re.compile(r"[\u3400-\u9fff]")


class AnswerKey(NamedTuple):
    """What must be equal for an answer to be the same: `question` is the normalised text."""

    tenant: str
    question: str
    index_state: str
    model: str
    settings: str


@dataclass(frozen=True, slots=True)
class CachedAnswer:
    """An answer and the chunks it was made from."""

    text: str
    chunk_ids: tuple[str, ...]


class AnswerCache(Protocol):
    """Where answers are kept."""

    def get(self, key: AnswerKey) -> CachedAnswer | None:
        """The answer under this key, or None when there is none or it has expired."""

    def put(self, key: AnswerKey, answer: CachedAnswer) -> None:
        """Keeps an answer for the cache's time to live."""


def stands_alone(question: str) -> bool:
    """Whether the question means the same in every conversation. Prefers a miss to a wrong answer."""
    if LEANS_EN.search(question) or LEANS_ZH.search(question):
        return False
    units = len(CJK.findall(question)) / 2 + len(re.findall(r"[A-Za-z0-9_]+", question))
    return units >= MIN_UNITS


class ProcessAnswerCache:
    """Answers in this process, kept by frequency and recency together (W-TinyLFU)."""

    def __init__(self, max_entries: int, ttl_s: float) -> None:
        try:
            from theine import Cache
        except ImportError as error:
            raise MissingExtra("theine", "local") from error
        self._ttl = timedelta(seconds=ttl_s)
        self._cache: Cache[AnswerKey, CachedAnswer] = Cache(max_entries)
        self.close: Callable[[], None] = self._cache.close

    def get(self, key: AnswerKey) -> CachedAnswer | None:
        """The answer under this key, or None when there is none or it has expired."""
        found, ok = self._cache.get(key)
        return found if ok else None

    def put(self, key: AnswerKey, answer: CachedAnswer) -> None:
        """Keeps an answer for the cache's time to live."""
        self._cache.set(key, answer, ttl=self._ttl)
