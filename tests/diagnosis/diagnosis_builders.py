"""A toy service that answers questions, so that a test says what is wrong with it and nothing else.

Prompts are words, a word is a token, and the prefix cache holds the last prompt of each session. Prefill takes
20 ms + 2.4 ms a computed token, each output token 15 ms + 2 us for each token before it.
"""

import random
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from ragclinic.context import shingles
from ragclinic.signals.content import ContentPolicy, question_key
from ragclinic.signals.records import Chunk, Part, PartRole, Span
from ragclinic.signals.seen import MemorySample, Request, Seen, Stage

VOCABULARY = [f"w{i:04d}" for i in range(4000)]
PREFILL_FIXED_MS = 20.0
PREFILL_TOKEN_MS = 2.4
TPOT_FIXED_MS = 15.0
TPOT_TOKEN_MS = 0.002
START_NS = 1_800_000_000_000_000_000


@lru_cache(maxsize=1024)
def passage(seed: int, words: int = 150) -> str:
    """A text of random words: two of them share next to no pair of words."""
    return " ".join(random.Random(seed).choices(VOCABULARY, k=words))


@lru_cache(maxsize=1024)
def token_keys(text: str) -> tuple[int, ...]:
    return tuple(zlib.crc32(word.encode()) for word in text.split())


@dataclass(frozen=True)
class Piece:
    """A chunk to retrieve: its text, its score, and where in a document it stands."""

    text: str
    score: float | None = 0.6
    doc: str | None = None
    start: int | None = None

    @property
    def end(self) -> int | None:
        return None if self.start is None else self.start + len(self.text)


def distinct(number: int, count: int = 6, words: int = 150) -> tuple[Piece, ...]:
    """Chunks that have nothing to do with each other, with scores as flat as cosines are."""
    return tuple(
        Piece(passage(1000 * number + i, words), 0.62 - 0.01 * i, f"doc-{number}-{i}", 0) for i in range(count)
    )


@dataclass(frozen=True)
class Ask:
    """One question to the toy service; `None` takes what the service would do by itself."""

    pieces: tuple[Piece, ...] = ()
    question: str | None = None
    answer: str | None = "It says nothing of that"
    session: str | None = None
    tenant: str | None = "default"
    arrival_s: float | None = None
    gap_s: float = 1.0
    output_tokens: int = 40
    window: int = 32768
    load_ms: float = 0.0
    queue_ms: float = 0.0
    before_ms: float = 0.0
    prefill_factor: float = 1.0
    decode_factor: float = 1.0
    cached_tokens: int | None = None
    error: str | None = None


@dataclass(frozen=True)
class Service:
    """How the toy service lays prompts out and delivers answers."""

    stable: bool = True
    system_tokens: int = 60
    streamed: bool | None = True
    delivers_late: bool = False
    history: bool = True
    system: str = field(default="")


def make_seen(asks: Sequence[Ask], service: Service | None = None, **facts: object) -> Seen:
    """What a recording of these questions would hold; `facts` are fields of `Seen`."""
    served = list(_serve(asks, service or Service()))
    seen = Seen(source="test", requests=tuple(served), probes=(probe(1, 70), probe(2, 330)))
    return replace(seen, **facts)  # type: ignore[arg-type]


def probe(number: int, tokens: int, output: int = 12) -> Request:
    """A calibration call as the engine makes it."""
    prefill, decode = prefill_ms(tokens), decode_ms(output, tokens)
    return Request(
        id=f"probe-{number}",
        arrival_ns=START_NS - number * 10**10,
        total_ms=prefill + decode,
        kind="probe",
        prompt_tokens=tokens,
        cached_tokens=0,
        output_tokens=output,
        stages=(Stage("prefill", 0.0, prefill), Stage("decode", prefill, prefill + decode)),
    )


def prefill_ms(computed: int) -> float:
    return PREFILL_FIXED_MS + PREFILL_TOKEN_MS * computed if computed else 0.0


def decode_ms(output: int, context: int) -> float:
    return (output - 1) * (TPOT_FIXED_MS + TPOT_TOKEN_MS * context)


def memory(seconds: float, used: float = 0.5, kv: float | None = None) -> tuple[MemorySample, ...]:
    """Two samples a second of a steady memory from the start on, as shares of the whole."""
    return tuple(
        MemorySample(START_NS + i * 500_000_000, used * 1e9, 1e9, None if kv is None else kv * 1e4, 1e4)
        for i in range(int(seconds * 2))
    )


def hashed(seen: Seen) -> Seen:
    """The same as a recording with `recording.content = "hashed"` would have kept it."""
    policy = ContentPolicy("hashed", shingles, salt=b"0123456789abcdef")
    return replace(seen, requests=tuple(_hashed(r, policy) for r in seen.requests))


def without(seen: Seen, **fields: object) -> Seen:
    """The same with these fields of every request replaced, as `stages=()`."""
    return replace(seen, requests=tuple(replace(r, **fields) for r in seen.requests))  # type: ignore[arg-type]


def _hashed(request: Request, policy: ContentPolicy) -> Request:
    span = policy.apply(Span("t", "s", None, "n", 0, 1, attributes={"input.value": request.question or ""}))
    assert isinstance(span, Span)
    return replace(
        request,
        question=None,
        answer=None,
        question_key=str(span.attributes["ragclinic.question.key"]),
        chunks=tuple(c for chunk in request.chunks if isinstance(c := policy.apply(chunk), Chunk)),
        parts=tuple(p for part in request.parts if isinstance(p := policy.apply(part), Part)),
    )


def _serve(asks: Sequence[Ask], service: Service) -> list[Request]:
    served: list[Request] = []
    turns: dict[str, list[str]] = {}
    prompts: dict[str, tuple[int, ...]] = {}
    last: tuple[int, ...] = ()
    clock_s = 0.0
    for number, ask in enumerate(asks):
        arrival_s = clock_s + ask.gap_s if ask.arrival_s is None else ask.arrival_s
        session = ask.session or ""
        question = ask.question if ask.question is not None else f"what about the topic of number {number}"
        parts = _parts(number, ask, question, turns.get(session, []), service)
        keys = tuple(key for part in parts for key in part.token_keys or ())
        known = prompts.get(session, last) if ask.session else last
        cached = ask.cached_tokens if ask.cached_tokens is not None else min(_common(known, keys), len(keys) - 1)
        request = _request(number, ask, question, parts, cached, arrival_s, service)
        served.append(request)
        last = prompts[session] = keys
        if ask.session and service.history:
            turns.setdefault(session, []).extend((question, ask.answer or ""))
        clock_s = arrival_s + request.total_ms / 1000
    return served


def _request(
    number: int, ask: Ask, question: str, parts: tuple[Part, ...], cached: int, arrival_s: float, service: Service
) -> Request:
    prompt = sum(p.tokens for p in parts)
    times = [
        ("embed", 2.0),
        ("search", 3.0),
        ("assemble", 1.0),
        ("load", ask.load_ms),
        ("queue", ask.queue_ms),
        ("prefill", ask.prefill_factor * prefill_ms(prompt - cached)),
        ("decode", ask.decode_factor * decode_ms(ask.output_tokens, prompt)),
    ]
    at, stages = ask.before_ms, []
    for name, ms in times:
        if ms > 0:
            stages.append(Stage(name, at, at + ms))
            at += ms
    decode = stages[-1]
    return Request(
        id=f"r{number:05d}",
        arrival_ns=START_NS + int(arrival_s * 1e9),
        total_ms=at,
        first_byte_ms=at if service.delivers_late else decode.start_ms,
        tenant=ask.tenant,
        session=ask.session,
        error=ask.error,
        question=question,
        question_key=question_key(question),
        answer=ask.answer,
        streamed=service.streamed,
        prompt_tokens=prompt,
        cached_tokens=cached,
        output_tokens=ask.output_tokens,
        window_tokens=ask.window,
        stages=tuple(stages),
        chunks=tuple(
            Chunk(f"r{number:05d}", rank, f"{p.doc}-{p.start}-{rank}", p.doc, p.start, p.end, p.score,
                  len(p.text.split()), p.text)
            for rank, p in enumerate(ask.pieces)
        ),
        parts=parts,
    )  # fmt: skip


def _parts(number: int, ask: Ask, question: str, turns: Sequence[str], service: Service) -> tuple[Part, ...]:
    system: tuple[PartRole, str] = ("system", service.system or passage(7, service.system_tokens))
    clock: tuple[PartRole, str] = ("volatile", f"the time is now {number:06d}")
    history: list[tuple[PartRole, str]] = [("history", text) for text in turns]
    head = [system, *history] if service.stable else [clock, system, *history]
    tail: list[tuple[PartRole, str]] = [("question", question)]
    if service.stable:
        tail.append(clock)
    context: list[tuple[PartRole, str]] = [("context", p.text) for p in ask.pieces]
    ranks = [None] * len(head) + list(range(len(context))) + [None] * len(tail)
    return tuple(
        Part(f"r{number:05d}", position, role, len(text.split()), text, token_keys(text), rank)
        for position, ((role, text), rank) in enumerate(zip([*head, *context, *tail], ranks, strict=True))
    )


def _common(one: Sequence[int], other: Sequence[int]) -> int:
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
