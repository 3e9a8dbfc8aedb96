"""What the slot lines of llama.cpp's server say of one request, gathered until the slot is released.

Tokens in `prompt eval` are those that were computed; what the cache held is in `cached n_tokens` or, in the
default verbosity where that is not printed, follows from the end: a released slot holds the prompt and all
output tokens but the last, which is never read back.
"""

import re
from dataclasses import dataclass

from ragclinic.signals.readers.finite import count
from ragclinic.signals.readers.log_common import Part, request_spans
from ragclinic.signals.records import AttributeValue, Span

MS_NS = 1_000_000
SERVICE = "llama.cpp"
MAX_MS = 7 * 86_400_000

LAUNCH = re.compile(r"processing task")
PROMPT = re.compile(r"prompt eval time =\s*(?P<ms>[\d.]+) ms /\s*(?P<tokens>\d+) tokens")
EVAL = re.compile(r"(?<!prompt )\beval time =\s*(?P<ms>[\d.]+) ms /\s*(?P<tokens>\d+) (?:tokens|runs)")
TOTAL = re.compile(r"total time =\s*(?P<ms>[\d.]+) ms")
STOP = re.compile(r"stop processing: (?:n_tokens|n_past) = (?P<tokens>\d+), truncated = (?P<truncated>\d)")
NEW = re.compile(
    r"new prompt, n_ctx_slot = (?P<window>\d+), n_keep = -?\d+, "
    r"(?:task\.n_tokens|n_prompt_tokens) = (?P<tokens>\d+)"
)
CACHED = re.compile(r"cached n_tokens = (?P<tokens>\d+)|(?:memory_seq_rm|kv cache rm) \[(?P<from>\d+), end\)")
SIMILAR = re.compile(r"sim(?:_best|ilarity)? ?[=:] ?(?P<similar>[\d.]+)(?:.*?f_keep = (?P<keep>[\d.]+))?")
FULL = re.compile(r"forcing full prompt re-processing")
DRAFT = re.compile(r"draft acceptance(?: rate)? = (?P<share>[\d.]+)")


@dataclass(slots=True)
class Task:
    """One request in one slot, filled line by line. Times are of the log's clock, None where it has none."""

    slot: int
    number: int
    launched_ns: int | None = None
    ended_ns: int | None = None
    prompt_ms: float | None = None
    computed_tokens: int | None = None
    eval_ms: float | None = None
    output_tokens: int | None = None
    total_ms: float | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    held_tokens: int | None = None
    window_tokens: int | None = None
    truncated: bool = False
    reprocessed: bool = False
    similarity: float | None = None
    kept_share: float | None = None
    draft_share: float | None = None

    def add(self, text: str, time_ns: int | None) -> bool:
        """Takes what a message says; False where it is nothing we record."""
        return self._timings(text, time_ns) or self._prompt(text, time_ns)

    def _timings(self, text: str, time_ns: int | None) -> bool:
        if found := PROMPT.search(text):
            self.prompt_ms, self.computed_tokens = _ms(found["ms"]), count(found["tokens"])
        elif found := EVAL.search(text):
            self.eval_ms, self.output_tokens = _ms(found["ms"]), count(found["tokens"])
        elif found := TOTAL.search(text):
            self.total_ms, self.ended_ns = _ms(found["ms"]), time_ns
        elif found := DRAFT.search(text):
            self.draft_share = float(found["share"])
        else:
            return False
        return True

    def _prompt(self, text: str, time_ns: int | None) -> bool:
        if LAUNCH.search(text):
            self.launched_ns = time_ns
        elif found := NEW.search(text):
            self.prompt_tokens, self.window_tokens = count(found["tokens"]), count(found["window"])
        elif found := STOP.search(text):
            self.held_tokens, self.truncated = count(found["tokens"]), found["truncated"] == "1"
            self.ended_ns = self.ended_ns if self.ended_ns is not None else time_ns
        elif FULL.search(text):
            self.reprocessed = True
        elif found := CACHED.search(text):
            if self.cached_tokens is None:  # later batches of the same prompt print it again, further on
                self.cached_tokens = count(found["tokens"] or found["from"])
        else:
            return False
        return True

    @property
    def complete(self) -> bool:
        """Whether timings and release were printed, in this order by the newest versions and reversed by older."""
        return self.total_ms is not None and self.held_tokens is not None

    @property
    def timed_ms(self) -> float | None:
        """How long the server worked for it, or None where it printed no timings (it was cancelled)."""
        if self.prompt_ms is not None and self.eval_ms is not None:
            return self.prompt_ms + self.eval_ms
        return self.total_ms

    def input_tokens(self) -> int | None:
        """The whole prompt, cached tokens included."""
        if self.prompt_tokens is not None or self.truncated:
            return self.prompt_tokens
        if self.held_tokens is None or self.output_tokens is None:
            return None
        found = self.held_tokens - max(0, self.output_tokens - 1)
        return found if found >= (self.computed_tokens or 0) else None

    def spans(self, trace: str, end_ns: int, window: int | None) -> list[Span]:
        """The request as spans that end at `end_ns`."""
        prompt_ns, eval_ns = round((self.prompt_ms or 0) * MS_NS), round((self.eval_ms or 0) * MS_NS)
        work_ns = round((self.timed_ms or 0) * MS_NS)
        start_ns = end_ns - max(work_ns, prompt_ns + eval_ns)
        if self.launched_ns is not None:
            start_ns = min(start_ns, self.launched_ns)
        parts = []
        if self.prompt_ms is not None:
            parts.append(Part("prefill", end_ns - eval_ns - prompt_ns, end_ns - eval_ns))
        if self.eval_ms is not None:
            parts.append(Part("decode", end_ns - eval_ns, end_ns))
        error = None if self.timed_ms is not None else "cancelled"
        return request_spans(
            trace, "completion", SERVICE, start_ns, end_ns, parts, self._attributes(window), error
        )

    def _attributes(self, window: int | None) -> dict[str, AttributeValue]:
        whole, cached = self.input_tokens(), self.cached_tokens
        if cached is None and whole is not None and self.computed_tokens is not None:
            cached = whole - self.computed_tokens
        known: dict[str, AttributeValue | None] = {
            "gen_ai.operation.name": "text_completion",
            "gen_ai.usage.input_tokens": whole,
            "gen_ai.usage.output_tokens": self.output_tokens,
            "gen_ai.usage.cache_read.input_tokens": cached,
            "ragclinic.window_tokens": self.window_tokens or window,
            "llamacpp.slot": self.slot,
            "llamacpp.computed_tokens": self.computed_tokens,
            "llamacpp.truncated": self.truncated or None,
            "llamacpp.full_reprocessing": self.reprocessed or None,
            "llamacpp.prompt_similarity": self.similarity,
            "llamacpp.kept_share": self.kept_share,
            "llamacpp.draft_acceptance": self.draft_share,
        }
        return {name: value for name, value in known.items() if value is not None}


def _ms(text: str) -> float:
    value = float(text)
    if not 0 <= value < MAX_MS:
        raise ValueError(f"{text} ms; expected less than a week")
    return value
