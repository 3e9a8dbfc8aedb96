"""Patients built in code: for each cause a service with that fault and no other, and helpers to build more."""

from collections.abc import Callable
from dataclasses import replace

from diagnosis_builders import START_NS, Ask, Piece, Service, distinct, make_seen, memory, passage

from ragclinic.signals.seen import MemorySample, Request, Seen, Stage

N = 32
"""Requests of a patient."""
SLO_MS = 500.0
"""An objective that all patients miss."""


def context_overfull() -> Seen:
    """Needed, distinct chunks fill nine tenths of a window of 1,100 tokens."""
    return make_seen([Ask(distinct(i), window=1100) for i in range(N)])


def context_redundant() -> Seen:
    """Four of six chunks are copies of one text in other documents."""
    return make_seen([Ask(_copies(i)) for i in range(N)])


def overlap_waste() -> Seen:
    """Six chunks in a row of one document, cut with an overlap of two fifths."""
    return make_seen([Ask(in_a_row(i)) for i in range(N)])


def tail_chunks_idle() -> Seen:
    """A reranker believes in two chunks of six, and the answers say what these say."""
    return make_seen([Ask(_reranked(i), answer=" ".join(_reranked(i)[0].text.split()[:12])) for i in range(N)])


def prefix_unstable() -> Seen:
    """A clock stands before a long system prompt."""
    asks = [Ask(distinct(i, 1, 150), session=f"s{i // 4}") for i in range(N)]
    return make_seen(asks, Service(stable=False, system_tokens=1500))


def answer_recomputed() -> Seen:
    """Sixty per cent of the requests ask one of a few questions again."""
    asks = [Ask(distinct(i % 13, 2), question=f"how does part number {i % 13} work in practice") for i in range(N)]
    # Only the question is the same: the prompt before it was another one, so the server caches nothing.
    return make_seen([replace(a, cached_tokens=0) for a in asks])


def not_streaming() -> Seen:
    """Answers of 200 tokens arrive when the last is written."""
    asks = [Ask(distinct(i, 1, 200), output_tokens=200) for i in range(N)]
    return make_seen(asks, Service(streamed=False, delivers_late=True))


def weights_reloaded() -> Seen:
    """Every fourth request comes after a pause and waits five seconds for the model."""
    return make_seen(
        [
            Ask(distinct(i, 1, 200), load_ms=5000.0 if i % 4 == 3 else 0.0, gap_s=400.0 if i % 4 == 3 else 2.0)
            for i in range(N)
        ]
    )


def prefill_bound() -> Seen:
    """Six chunks that are all needed, in a large window."""
    return make_seen([Ask(distinct(i)) for i in range(N)])


def decode_bound() -> Seen:
    """Streamed answers of 400 tokens."""
    return make_seen([Ask(distinct(i, 1, 200), output_tokens=400, answer=passage(i, 380)) for i in range(N)])


def queue_saturated(slots: int = 2) -> Seen:
    """Requests of 1.7 s of work arrive every 0.4 s at a server with so many slots."""
    alone = make_seen([Ask(distinct(i, 1, 400), arrival_s=0.4 * i) for i in range(N)])
    return replace(queued(alone, slots), slots=slots)


PATIENTS: dict[str, Callable[[], Seen]] = {
    "context-overfull": context_overfull,
    "context-redundant": context_redundant,
    "overlap-waste": overlap_waste,
    "tail-chunks-idle": tail_chunks_idle,
    "prefix-unstable": prefix_unstable,
    "answer-recomputed": answer_recomputed,
    "not-streaming": not_streaming,
    "weights-reloaded": weights_reloaded,
    "prefill-bound": prefill_bound,
    "decode-bound": decode_bound,
    "queue-saturated": queue_saturated,
}


def in_a_row(number: int, count: int = 6, words: int = 150, overlap: int = 60) -> tuple[Piece, ...]:
    """Chunks of one document, each beginning with the last words of the one before; worst rank first."""
    step = words - overlap
    text = passage(number, step * count + overlap).split()
    found = []
    for i in range(count):
        chunk = " ".join(text[i * step : i * step + words])
        start = sum(len(word) + 1 for word in text[: i * step])
        found.append(Piece(chunk, 0.60 - 0.01 * i, f"doc-{number}", start))
    return tuple(reversed(found))


def queued(seen: Seen, slots: int) -> Seen:
    """The same requests, each waiting until one of so many slots is free."""
    free = [0.0] * slots
    found = []
    for request in seen.requests:
        service = [s for s in request.stages if s.name in ("prefill", "decode")]
        at = request.arrival_ns / 1e6 + service[0].start_ms
        slot = min(range(slots), key=lambda k: free[k])
        wait = max(0.0, free[slot] - at)
        free[slot] = at + wait + sum(s.duration_ms for s in service)
        found.append(_waiting(request, wait))
    return replace(seen, requests=tuple(found))


def memory_of_reloads(seen: Seen, reload_at: Callable[[Request], bool]) -> tuple[MemorySample, ...]:
    """Memory that falls to idle before these requests and is back in the middle of them."""
    end_s = (seen.requests[-1].arrival_ns - START_NS) / 1e9 + seen.requests[-1].total_ms / 1000
    out = [
        (r.arrival_ns - 3 * 10**9, r.arrival_ns + int(r.total_ms * 0.6e6)) for r in seen.requests if reload_at(r)
    ]
    return tuple(
        replace(s, used_bytes=0.1e9) if any(a <= s.time_ns < b for a, b in out) else s
        for s in memory(end_s, used=0.6)
    )


def _waiting(request: Request, wait_ms: float) -> Request:
    stages = []
    for stage in request.stages:
        late = wait_ms if stage.name in ("prefill", "decode") else 0.0
        if stage.name == "prefill" and wait_ms:
            stages.append(Stage("queue", stage.start_ms, stage.start_ms + wait_ms))
        stages.append(Stage(stage.name, stage.start_ms + late, stage.end_ms + late))
    first = None if request.first_byte_ms is None else request.first_byte_ms + wait_ms
    return replace(request, stages=tuple(stages), total_ms=request.total_ms + wait_ms, first_byte_ms=first)


def _copies(number: int) -> tuple[Piece, ...]:
    text = passage(number)
    return (
        *(Piece(text, 0.60, f"copy-{number}-{i}", 0) for i in range(4)),
        *distinct(number + 500, 2),
    )


def _reranked(number: int) -> tuple[Piece, ...]:
    scores = (0.94, 0.90, 0.03, 0.02, 0.02, 0.01)
    return tuple(replace(p, score=s) for p, s in zip(distinct(number), scores, strict=True))
