"""The prompt of a foreign trace made comparable: cut at the chunks it quotes, its text turned into units.

Our own engine records parts with the model's token ids, and those stay as they are. Other traces hold the text of
messages; which stretch of it is a retrieved chunk is found by looking for the chunk's text.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from ragclinic.signals.records import Chunk, Part, PartRole
from ragclinic.signals.units import unit_keys, units

MIN_QUOTE_CHARACTERS = 20
"""A shorter chunk ("Yes.") would be found anywhere."""
QUOTED_IN = frozenset({"question", "context", "template", "system"})


def prompt_parts(parts: Sequence[Part], chunks: Sequence[Chunk]) -> tuple[Part, ...]:
    """The parts of the request's longest prompt, in order; of several calls the others wrote queries or titles."""
    calls: dict[str | None, list[Part]] = {}
    for part in parts:
        calls.setdefault(part.span_id, []).append(part)
    if not calls:
        return ()
    chosen = max(calls.values(), key=lambda call: sum(p.tokens for p in call))
    cut = [piece for part in sorted(chosen, key=lambda p: p.position) for piece in _cut(part, chunks)]
    return tuple(replace(_with_units(part), position=position) for position, part in enumerate(cut))


def used_chunks(
    chunks: Iterable[Chunk], order: Mapping[str, int], rerankers: Collection[str]
) -> tuple[Chunk, ...]:
    """The chunks that reached the prompt: the last reranker's where one ran, else those of each search in turn.

    A chunk that several searches returned (the questions of a multi-query retriever) counts once, and ranks are
    counted anew. `order` tells when each span began.
    """
    lists: dict[str | None, list[Chunk]] = {}
    for chunk in sorted(chunks, key=lambda c: (order.get(c.span_id or "", 0), c.rank)):
        lists.setdefault(chunk.span_id, []).append(chunk)
    if len(lists) < 2:
        return tuple(_counted(chunk) for found in lists.values() for chunk in found)
    reranked = [found for span_id, found in lists.items() if span_id in rerankers]
    merged: dict[str, Chunk] = {}
    for found in reranked[-1:] or lists.values():
        for chunk in found:
            merged.setdefault(chunk.chunk_id, chunk)
    told = {chunk.chunk_id: chunk for found in lists.values() for chunk in found if chunk.doc is not None}
    full = (_placed(chunk, told.get(chunk.chunk_id)) for chunk in merged.values())
    return tuple(replace(_counted(chunk), rank=rank) for rank, chunk in enumerate(full))


def _placed(chunk: Chunk, other: Chunk | None) -> Chunk:
    """The chunk with its place in its document, which a search tells and a reranker leaves out."""
    if chunk.doc is not None or other is None:
        return chunk
    return replace(chunk, doc=other.doc, start=other.start, end=other.end, text=chunk.text or other.text)


def _counted(chunk: Chunk) -> Chunk:
    if chunk.tokens is not None or chunk.text is None:
        return chunk
    return replace(chunk, tokens=len(units(chunk.text)))


def _with_units(part: Part) -> Part:
    if part.token_keys is not None or part.text is None:
        return part
    keys = unit_keys(part.text)
    return replace(part, tokens=len(keys), token_keys=keys)


def _cut(part: Part, chunks: Sequence[Chunk]) -> Iterator[Part]:
    """The part cut where it quotes chunks; whole where it quotes none or is tokens already."""
    if part.text is None or part.token_keys is not None or part.role not in QUOTED_IN or part.rank is not None:
        yield part
        return
    before: PartRole = "system" if part.role == "system" else "template"
    position = 0
    for start, end, rank in sorted(_quotes(part.text, chunks)):
        if start < position:
            continue
        if part.text[position:start].strip():
            yield replace(part, text=part.text[position:start], role=before)
        yield replace(part, text=part.text[start:end], role="context", rank=rank)
        position = end
    if part.text[position:].strip():
        yield replace(part, text=part.text[position:])


def _quotes(text: str, chunks: Sequence[Chunk]) -> Iterator[tuple[int, int, int]]:
    for chunk in chunks:
        quoted = (chunk.text or "").strip()
        start = text.find(quoted) if len(quoted) >= MIN_QUOTE_CHARACTERS else -1
        if start >= 0:
            yield start, start + len(quoted), chunk.rank
