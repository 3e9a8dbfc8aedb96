"""The RAG itself: one question in, one answer out, and everything that happened recorded."""

import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from ragclinic.cache.answers import AnswerCache, AnswerKey, CachedAnswer, stands_alone
from ragclinic.engine.llm.backend import Llm
from ragclinic.engine.llm.client import Generation, OnText
from ragclinic.engine.prompt import Turn
from ragclinic.engine.recorder import Recorder
from ragclinic.engine.retrieve import Prepared, Retriever
from ragclinic.engine.settings import Settings
from ragclinic.engine.tokenizer import Tokenizer
from ragclinic.engine.trace import RequestTrace, StageRun
from ragclinic.errors import BadInput, ClinicError
from ragclinic.signals.content import question_key
from ragclinic.signals.requests import ANSWER_CACHE, KIND

MAX_QUESTION_SHARE = 0.5
"""A question may fill half of the window: the rest is for what it is answered from."""
NS_PER_MS = 1e6


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer and where its time went. `generation` is None where the answer came from the cache."""

    text: str
    trace: RequestTrace
    prepared: Prepared | None = None
    generation: Generation | None = None

    @property
    def cached(self) -> bool:
        """Whether it came from the answer cache."""
        return self.generation is None


class Engine:
    """Answers questions with one index and one LLM; safe to use from several threads."""

    def __init__(
        self,
        settings: Settings,
        retriever: Retriever,
        index_state: str,
        tokenizer: Tokenizer,
        llm: Llm,
        recorder: Recorder,
        cache: AnswerCache | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.settings = settings
        self.llm = llm
        self._retriever = retriever
        self._index_state = index_state
        self._tokenizer = tokenizer
        self._recorder = recorder
        self._cache = cache
        self._now = now
        self._settings_key = settings.model_dump_json()
        self._sessions: dict[tuple[str, str], list[Turn]] = defaultdict(list)
        self._lock = threading.Lock()

    def ask(
        self, question: str, session: str | None = None, tenant: str = "default", on_text: OnText | None = None
    ) -> Answer:
        """The answer; `on_text` gets it as it comes where it is streamed, else at the end.

        Raises:
            BadInput: an empty question, or one longer than half of the window.
            Unreachable: the LLM does not answer.
        """
        self._check(question)
        trace = RequestTrace()
        trace.attributes |= {"input.value": question, "tenant.id": tenant, KIND: "user"}
        if session is not None:
            trace.attributes["session.id"] = session
        try:
            answer = self._answer(question, session, tenant, trace, on_text)
        except ClinicError as error:
            trace.finish()
            self._recorder.request(trace, error=str(error))
            raise
        if session is not None:
            with self._lock:
                self._sessions[tenant, session].append(Turn(question, answer.text))
        trace.attributes["output.value"] = answer.text
        self._recorder.request(trace, answer.prepared, answer.generation)
        return answer

    def prepare(self, question: str) -> Prepared:
        """The prompt that a first question of a session would be answered from, without asking the LLM."""
        return self._retriever.prepare(question, (), self._clock(), RequestTrace())

    def _answer(
        self, question: str, session: str | None, tenant: str, trace: RequestTrace, on_text: OnText | None
    ) -> Answer:
        key = self._key(question, tenant)
        if key is not None and self._cache is not None:
            with trace.stage("cache"):
                hit = self._cache.get(key)
            trace.attributes[ANSWER_CACHE] = "hit" if hit else "miss"
            if hit:
                self._deliver(hit.text, trace, on_text)
                return Answer(hit.text, trace)
        with self._lock:
            history = tuple(self._sessions[tenant, session]) if session is not None else ()
        prepared = self._retriever.prepare(question, history, self._clock(), trace)
        generation = self._generate(prepared, trace, on_text)
        if key is not None and self._cache is not None:
            self._cache.put(key, CachedAnswer(generation.text, tuple(h.chunk.chunk_id for h in prepared.hits)))
        return Answer(generation.text, trace, prepared, generation)

    def _generate(self, prepared: Prepared, trace: RequestTrace, on_text: OnText | None) -> Generation:
        settings = self.settings
        if not self.llm.ready():
            with trace.stage("load"):
                self.llm.load()

        def pass_on(text: str) -> None:
            trace.first_byte()
            if on_text is not None:
                on_text(text)

        streamed = settings.delivery.stream
        generation = self.llm.chat(
            prepared.prompt.messages, settings.llm.max_tokens, pass_on if streamed else None
        )
        trace.stages += generation_stages(generation, settings)
        if not streamed:
            self._deliver(generation.text, trace, on_text)
        trace.finish()
        if not settings.llm.keep_loaded:
            self.llm.unload()
        return generation

    def _deliver(self, text: str, trace: RequestTrace, on_text: OnText | None) -> None:
        trace.finish()
        if on_text is not None:
            on_text(text)

    def _key(self, question: str, tenant: str) -> AnswerKey | None:
        if self._cache is None or not stands_alone(question):
            return None
        return AnswerKey(tenant, question_key(question), self._index_state, self.llm.model, self._settings_key)

    def _check(self, question: str) -> None:
        limit = int(self.settings.llm.window_tokens * MAX_QUESTION_SHARE)
        if not question.strip():
            raise BadInput("question: it is empty; expected some words; ask something")
        # A token is at most a few dozen characters: far longer texts need no counting.
        tokens = len(self._tokenizer.encode(question)) if len(question) < limit * 32 else len(question) // 8
        if tokens > limit:
            raise BadInput(
                f"question: {len(question):,} characters, about {tokens:,} tokens; expected at most {limit:,}, "
                "half of the window; put the text into the knowledge base and ask about it"
            )

    def _clock(self) -> str:
        return self._now().strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]


def generation_stages(generation: Generation, settings: Settings) -> Sequence[StageRun]:
    """The generation and, where the server told its times, its queue, prefill and decode inside it.

    What neither prefill nor decode explains lies before them: the request waited for a slot.
    """
    attributes: dict[str, str | int | float | bool] = {
        "gen_ai.request.model": settings.llm.model,
        "gen_ai.request.max_tokens": settings.llm.max_tokens,
        "gen_ai.request.stream": settings.delivery.stream,
        "ragclinic.window_tokens": settings.llm.window_tokens,
    }
    counts = {
        "gen_ai.usage.input_tokens": generation.prompt_tokens,
        "gen_ai.usage.output_tokens": generation.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": generation.cached_tokens,
    }
    attributes |= {name: value for name, value in counts.items() if value is not None}
    start, end = generation.start_ns, generation.end_ns
    if generation.first_text_ns is not None:
        attributes["gen_ai.response.time_to_first_chunk"] = (generation.first_text_ns - start) / 1e9
    found = [StageRun("generate", start, end, attributes)]
    if generation.prefill_ms is None or generation.decode_ms is None:
        return found
    decode_start = max(start, end - int(generation.decode_ms * NS_PER_MS))
    prefill_start = max(start, decode_start - int(generation.prefill_ms * NS_PER_MS))
    return [
        *found,
        StageRun("queue", start, prefill_start),
        StageRun("prefill", prefill_start, decode_start),
        StageRun("decode", decode_start, end),
    ]
