"""What a set of traces held, to say at its end what it did not and the line that turns each on."""

import numpy as np
import pyarrow as pa

from ragclinic.signals.readers.encode import Triples
from ragclinic.signals.readers.names import FIRST_CHUNK_S
from ragclinic.signals.readers.reader import ReadLog

STAGES, CHUNKS, CHUNK_TEXT, SCORES = "stages", "chunks", "chunk text", "chunk scores"
PROMPT_TOKENS, CACHED_TOKENS, FIRST_TOKEN = "prompt tokens", "cached tokens", "time to first token"
PROMPT, TENANT = "prompt parts", "tenant"
SPAN_SIGNALS = (STAGES, CHUNKS, CHUNK_TEXT, SCORES, PROMPT_TOKENS, CACHED_TOKENS, FIRST_TOKEN, PROMPT, TENANT)

HOW = {
    STAGES: "instrument the pipeline: pip install openinference-instrumentation-langchain (or -llama-index) and "
    "call LangChainInstrumentor().instrument()",
    CHUNKS: "instrument the retriever: openinference-instrumentation-langchain or -llama-index writes "
    "retrieval.documents.*",
    CHUNK_TEXT: "let the instrumentation keep content: unset OPENINFERENCE_HIDE_OUTPUTS, set "
    "TRACELOOP_TRACE_CONTENT=true",
    SCORES: "return scores from the retriever: similarity_search_with_score, so that document.score is written",
    PROMPT_TOKENS: "ask the server for counts: stream_options={'include_usage': True}",
    CACHED_TOKENS: "start vLLM with --enable-prompt-tokens-details, so that its usage holds "
    "prompt_tokens_details.cached_tokens",
    FIRST_TOKEN: "stream the answer through an instrumented client, or start vLLM with --otlp-traces-endpoint",
    PROMPT: "let the instrumentation keep messages: unset OPENINFERENCE_HIDE_INPUTS, set "
    "TRACELOOP_TRACE_CONTENT=true or OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true",
    TENANT: "set the attribute tenant.id on the root span, or name yours with --tenant NAME",
}
# Names whose presence shows a signal.
_SHOWN_BY = {
    STAGES: (
        "ragclinic.stage",
        "gen_ai.operation.name",
        "openinference.span.kind",
        "traceloop.span.kind",
        "llm.request.type",
        "langfuse.observation.type",
        "gen_ai.latency.e2e",
    ),
    PROMPT_TOKENS: ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt"),
    CACHED_TOKENS: (
        "gen_ai.usage.cache_read.input_tokens",
        "gen_ai.usage.cache_read_input_tokens",
        "gen_ai.usage.cached_tokens",
        "llm.token_count.prompt_details.cache_read",
    ),
    FIRST_TOKEN: (FIRST_CHUNK_S, "gen_ai.latency.time_to_first_token"),
    TENANT: ("tenant.id", "enduser.id", "user.id", "session.id", "gen_ai.conversation.id"),
}


class Inventory:
    """Collects what was seen, batch after batch."""

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._rows = 0

    def chunks(self, table: pa.Table) -> pa.Table:
        """Notes what the chunks carry; the table comes back."""
        self._seen.add(CHUNKS)
        if table.column("text").null_count < len(table):
            self._seen.add(CHUNK_TEXT)
        if table.column("score").null_count < len(table):
            self._seen.add(SCORES)
        return table

    def spans(self, triples: Triples, messages: bool) -> None:
        """Notes what the attributes carry."""
        self._rows += 1
        used = np.unique(triples.key)
        names = {triples.names[index] for index in used.tolist()}
        self._seen.update(signal for signal, shown in _SHOWN_BY.items() if names.intersection(shown))
        if messages:
            self._seen.add(PROMPT)

    def report(self, log: ReadLog) -> None:
        """Tells the log which signals were in no batch; nothing where there were no spans at all."""
        for signal in SPAN_SIGNALS:
            if self._rows and signal not in self._seen and not (signal in _OF_CHUNKS and CHUNKS not in self._seen):
                log.lacks(signal, HOW[signal])


_OF_CHUNKS = frozenset({CHUNK_TEXT, SCORES})
