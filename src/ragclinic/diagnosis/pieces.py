"""The context of a prompt, piece by piece, as the model read it: what the causes about chunks look at.

A piece is a chunk as it was retrieved, or what a compiler left of it. Shingles come from the text, or from the
salted hashes of a recording that keeps no text; overlap and repetition come out the same.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from ragclinic.context.redundancy import Shingles, shingles
from ragclinic.signals.records import Chunk, Part
from ragclinic.signals.seen import Request

UNTOUCHED_SLACK = 0.1
"""A part within this share of its chunk's tokens is taken for the whole chunk where no text can be compared."""
UNTOUCHED_TOKENS = 8
"""Tokens that a template may put around a chunk, as a number or a title."""


class Piece(NamedTuple):
    """One stretch of context. `chunk` is the retrieved chunk where the piece is the whole of it."""

    rank: int | None
    tokens: float | None
    keys: Shingles | None
    chunk: Chunk | None = None

    @property
    def placed(self) -> bool:
        """Whether it is known which characters of which document it is."""
        c = self.chunk
        return c is not None and c.doc is not None and c.start is not None and c.end is not None


def pieces(request: Request) -> tuple[Piece, ...]:
    """The context of a request's prompt; of the chunks as retrieved where the prompt's parts are not known."""
    parts = [p for p in request.parts if p.role == "context"]
    if not parts:
        return tuple(Piece(c.rank, tokens, _keys(c), c) for c, tokens in _with_tokens(request))
    by_rank = {c.rank: c for c in request.chunks}
    return tuple(_piece(part, by_rank.get(part.rank) if part.rank is not None else None) for part in parts)


def context_tokens(request: Request) -> float | None:
    """Prompt tokens of the context, or None where neither parts nor chunks tell."""
    tokens = [piece.tokens for piece in pieces_without_keys(request)]
    return sum(t for t in tokens if t is not None) if tokens and None not in tokens else None


def pieces_without_keys(request: Request) -> tuple[Piece, ...]:
    """The pieces with their tokens only: cheap, for counting over all requests."""
    parts = [p for p in request.parts if p.role == "context"]
    if parts:
        return tuple(Piece(p.rank, p.tokens, None) for p in parts)
    return tuple(Piece(c.rank, tokens, None, c) for c, tokens in _with_tokens(request))


def keyed(requests: Sequence[Request], wanted: Mapping[str, object]) -> tuple[Request, ...]:
    """The requests; those with an id in `wanted` have the shingles of their chunks, computed once for all."""
    known: dict[str, tuple[int, ...]] = {}

    def keys(chunk: Chunk) -> Chunk:
        if chunk.keys is not None or chunk.text is None:
            return chunk
        if chunk.text not in known:
            # Within a process equal shingles hash alike, and only equality counts.
            known[chunk.text] = tuple({hash(s) for s in shingles(chunk.text)})
        return replace(chunk, keys=known[chunk.text])

    return tuple(replace(r, chunks=tuple(keys(c) for c in r.chunks)) if r.id in wanted else r for r in requests)


def _piece(part: Part, chunk: Chunk | None) -> Piece:
    if chunk is not None and _untouched(part, chunk):
        return Piece(part.rank, part.tokens, _keys(chunk), chunk)
    return Piece(part.rank, part.tokens, shingles(part.text) if part.text is not None else None)


def _untouched(part: Part, chunk: Chunk) -> bool:
    if part.text is not None and chunk.text is not None:
        return chunk.text.strip() in part.text
    if chunk.tokens is None:
        return False
    return abs(part.tokens - chunk.tokens) <= UNTOUCHED_SLACK * chunk.tokens + UNTOUCHED_TOKENS


def _keys(chunk: Chunk) -> Shingles | None:
    if chunk.keys is not None:
        return frozenset(map(str, chunk.keys))
    return shingles(chunk.text) if chunk.text is not None else None


def _with_tokens(request: Request) -> list[tuple[Chunk, float | None]]:
    """Chunks with their tokens; where they were not counted, a share of the prompt by length of text."""
    if all(c.tokens is not None for c in request.chunks):
        return [(c, c.tokens) for c in request.chunks]
    chars = sum(len(c.text or "") for c in request.chunks)
    if request.prompt_tokens is None or not chars or any(c.text is None for c in request.chunks):
        return [(c, c.tokens) for c in request.chunks]
    rest = chars + len(request.question or "")
    return [(c, request.prompt_tokens * len(c.text or "") / rest) for c in request.chunks]
