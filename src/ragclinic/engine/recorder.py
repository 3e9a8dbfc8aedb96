"""Records requests: spans, the chunks retrieved and the parts of the prompt; or keeps nothing."""

from typing import Protocol

from opentelemetry.trace import Tracer

from ragclinic.engine.llm.client import Generation
from ragclinic.engine.retrieve import Prepared
from ragclinic.engine.spans import emit
from ragclinic.engine.tokenizer import Tokenizer
from ragclinic.engine.trace import RequestTrace
from ragclinic.signals.recording import RecordingWriter
from ragclinic.signals.records import Chunk, Part


class Recorder(Protocol):
    """Takes a finished request."""

    def request(
        self,
        trace: RequestTrace,
        prepared: Prepared | None = None,
        generation: Generation | None = None,
        error: str | None = None,
    ) -> None:
        """Keeps the request."""


class NoRecorder:
    """Keeps nothing."""

    def request(
        self,
        trace: RequestTrace,
        prepared: Prepared | None = None,
        generation: Generation | None = None,
        error: str | None = None,
    ) -> None:
        """Does nothing."""


class FolderRecorder:
    """Writes requests to a recording, after the user has the answer."""

    def __init__(self, writer: RecordingWriter, tracer: Tracer, tokenizer: Tokenizer) -> None:
        self._writer = writer
        self._tracer = tracer
        self._tokenizer = tokenizer

    def request(
        self,
        trace: RequestTrace,
        prepared: Prepared | None = None,
        generation: Generation | None = None,
        error: str | None = None,
    ) -> None:
        """Adds the request's spans, chunks and parts."""
        trace_id = emit(self._tracer, trace, error)
        if prepared is not None:
            self._writer.add(*_chunks(trace_id, prepared))
            self._writer.add(*self._parts(trace_id, prepared, generation))

    def _parts(self, trace_id: str, prepared: Prepared, generation: Generation | None) -> list[Part]:
        found: list[Part] = []
        for position, piece in enumerate(prepared.prompt.pieces):
            keys = tuple(self._tokenizer.encode(piece.text))
            found.append(Part(trace_id, position, piece.role, len(keys), piece.text, keys, piece.rank))
        total = generation.prompt_tokens if generation else None
        rest = 0 if total is None else total - sum(p.tokens for p in found)
        if rest > 0:  # the chat template's own tokens, which no piece of ours holds
            found.append(Part(trace_id, len(found), "template", rest))
        return found


def _chunks(trace_id: str, prepared: Prepared) -> list[Chunk]:
    return [
        Chunk(
            trace_id,
            rank,
            hit.chunk.chunk_id,
            hit.chunk.doc,
            hit.chunk.start,
            hit.chunk.end,
            hit.score,
            hit.chunk.tokens,
            hit.chunk.text,
        )
        for rank, hit in enumerate(prepared.hits)
    ]
