"""From a question to a prompt: embed, search, assemble. Everything of an answer but the LLM."""

from collections.abc import Sequence
from dataclasses import dataclass

from ragclinic.context import CountTokens, Passage, compile_context
from ragclinic.engine.embed import Embed
from ragclinic.engine.index import Hit, Index
from ragclinic.engine.prompt import Prompt, Turn, build
from ragclinic.engine.settings import Settings
from ragclinic.engine.trace import RequestTrace


@dataclass(frozen=True, slots=True)
class Prepared:
    """A prompt and the chunks that were retrieved for it, best first."""

    prompt: Prompt
    hits: tuple[Hit, ...]


class Retriever:
    """Finds the context of a question and lays the prompt out."""

    def __init__(self, settings: Settings, index: Index, embed: Embed, count: CountTokens) -> None:
        self._settings = settings
        self._index = index
        self._embed = embed
        self._count = count

    def prepare(self, question: str, history: Sequence[Turn], now: str, trace: RequestTrace) -> Prepared:
        """The prompt; each step becomes a stage of the trace."""
        settings = self._settings
        with trace.stage("embed", **{"gen_ai.request.model": settings.embedder.model}):
            vector = self._embed([question])[0]
        with trace.stage("search", **{"gen_ai.retrieval.top_k": settings.retrieval.top_k}):
            hits = tuple(self._index.search(vector, settings.retrieval.top_k, settings.retrieval.pool))
        with trace.stage("assemble"):
            context = self._context(question, hits)
            prompt = build(settings.prompt, question, context, history, now)
        return Prepared(prompt, hits)

    def _context(self, question: str, hits: Sequence[Hit]) -> list[tuple[str, int | None]]:
        settings = self._settings
        if not settings.compiler.enabled:
            order: Sequence[int] = range(len(hits))
            if settings.prompt.chunk_order == "document":
                order = sorted(order, key=lambda i: (hits[i].chunk.doc, hits[i].chunk.start))
            return [(hits[i].chunk.text, i) for i in order]
        passages = [
            Passage(h.chunk.chunk_id, h.chunk.text, h.chunk.doc, h.chunk.start, h.chunk.end, h.score) for h in hits
        ]
        compiled = compile_context(
            question,
            passages,
            budget_tokens=settings.compiler.budget_tokens or None,
            count=self._count,
            embed=self._index.remembering(self._embed),
            deduplicate=settings.compiler.deduplicate,
            merge_overlap=settings.compiler.merge_overlap,
        )
        return list(compiled.pieces)
