"""The price tag of each chunk of a prompt: what it cost to read and to hold, and what it was good for."""

from typing import NamedTuple

from ragclinic.diagnosis.latency_model import LatencyModel
from ragclinic.diagnosis.pieces import Piece, pieces
from ragclinic.diagnosis.repetition import WHOLE_SHARE, neighbour_overlaps
from ragclinic.diagnosis.use import used
from ragclinic.signals.seen import Request

HOLDING = ("prefill", "decode", "generate")


class Price(NamedTuple):
    """One chunk of one prompt. None where the recording does not tell.

    `prefill_ms` is what leaving the chunk out would save, by the latency model. `kv_byte_seconds` are the bytes of
    its tokens in the KV cache times the seconds from prefill to the last token. `shared_tokens` another chunk of
    the prompt holds as well. `used` is whether the answer used it (`use.py`).
    """

    rank: int | None
    chunk_id: str | None
    doc: str | None
    tokens: float | None
    prefill_ms: float | None
    kv_byte_seconds: float | None
    shared_tokens: float | None
    used: bool | None


def price_chunks(
    request: Request, model: LatencyModel | None, kv_bytes_per_token: float | None = None
) -> tuple[Price, ...]:
    """The price tags of the chunks of a request's prompt, in prompt order."""
    found = pieces(request)
    texts = [_text(request, piece) for piece in found]
    by_rank = sorted(range(len(found)), key=lambda i: (found[i].rank is None, found[i].rank or 0, i))
    uses = used(request.answer, request.question, [texts[i] for i in by_rank])
    use = {} if uses is None else dict(zip(by_rank, uses, strict=True))
    shared = _shared(found)
    held_s = _held_s(request)
    return tuple(
        Price(
            rank=piece.rank,
            chunk_id=piece.chunk.chunk_id if piece.chunk else None,
            doc=piece.chunk.doc if piece.chunk else None,
            tokens=piece.tokens,
            prefill_ms=_prefill_ms(request, model, piece.tokens),
            kv_byte_seconds=_product(piece.tokens, kv_bytes_per_token, held_s),
            shared_tokens=_product(shared.get(i, 0.0), piece.tokens) if shared is not None else None,
            used=use.get(i),
        )
        for i, piece in enumerate(found)
    )


def _text(request: Request, piece: Piece) -> str | None:
    if piece.chunk is not None:
        return piece.chunk.text
    return next((p.text for p in request.parts if p.role == "context" and p.rank == piece.rank), None)


def _shared(found: tuple[Piece, ...]) -> dict[int, float] | None:
    """For each piece the share of it that another one holds too, by border or, for whole copies, by shingles."""
    keys = [piece.keys for piece in found]
    if any(k is None for k in keys):
        return None
    shares: dict[int, float] = {}
    for (first, second), share in (neighbour_overlaps(found) or {}).items():
        shares[second] = max(shares.get(second, 0.0), share)
        shares[first] = max(shares.get(first, 0.0), _mirrored(found, first, second, share))
    for i, one in enumerate(keys):
        for j, other in enumerate(keys):
            if i != j and one and other and len(one & other) >= WHOLE_SHARE * len(one):
                shares[i] = 1.0
    return shares


def _mirrored(found: tuple[Piece, ...], first: int, second: int, share: float) -> float:
    """The share of the earlier piece that the later holds: the same tokens over its own length."""
    one, other = found[first].tokens, found[second].tokens
    return min(1.0, share * other / one) if one and other else 0.0


def _prefill_ms(request: Request, model: LatencyModel | None, tokens: float | None) -> float | None:
    if model is None or tokens is None or request.prompt_tokens is None or request.computed_tokens is None:
        return None
    n, context = request.computed_tokens, request.prompt_tokens
    without = model.prefill_ms(max(0.0, n - tokens), max(0.0, context - tokens))
    return model.prefill_ms(n, context) - without


def _held_s(request: Request) -> float | None:
    stages = [s for s in request.stages if s.name in HOLDING]
    return (stages[-1].end_ms - stages[0].start_ms) / 1000 if stages else None


def _product(*factors: float | None) -> float | None:
    product = 1.0
    for factor in factors:
        if factor is None:
            return None
        product *= factor
    return product
