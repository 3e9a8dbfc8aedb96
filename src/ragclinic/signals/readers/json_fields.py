"""Which fields of an application's JSON log mean what: common names tried in order, or a map given by the user.

Dots reach into objects (`usage.prompt_tokens`). A duration is only taken from a field whose name says its unit,
or whose value does (`"541.2ms"`): `duration: 12` may be anything, and guessing by a factor of a thousand is
worse than asking. Response bodies of Ollama, llama.cpp, vLLM and the OpenAI API, written one a line, are such
logs as well.
"""

import difflib
from collections.abc import Mapping
from typing import Any

from ragclinic.errors import BadInput
from ragclinic.signals.readers.durations import MAX_NS, duration_ns
from ragclinic.signals.readers.fields import number

MS, S, NS = 1e6, 1e9, 1.0

# Ours -> theirs, most telling first.
TEXTS: Mapping[str, tuple[str, ...]] = {
    "trace_id": ("trace_id", "traceId", "traceID", "request_id", "requestId", "req_id", "correlation_id", "id"),
    "name": ("name", "route", "path", "url", "endpoint", "model"),
    "stage": ("stage", "step", "phase", "operation", "event"),
    "tenant": ("tenant_id", "tenant", "customer", "user_id", "user"),
    "session": ("session_id", "conversation_id", "chat_id"),
    "question": ("question", "query"),
    "answer": ("answer",),
    "error": ("error", "exception", "err"),
}
TIMES: Mapping[str, tuple[str, ...]] = {
    "start_time": ("start_time", "startTime", "started_at", "created"),
    "end_time": (
        "end_time",
        "endTime",
        "finished_at",
        "timestamp",
        "@timestamp",
        "time",
        "ts",
        "created_at",
        "asctime",
    ),
}
COUNTS: Mapping[str, tuple[str, ...]] = {
    "prompt_tokens": (
        "prompt_tokens", "input_tokens", "usage.prompt_tokens", "usage.input_tokens", "prompt_eval_count",
    ),
    "output_tokens": (
        "output_tokens", "completion_tokens", "usage.completion_tokens", "usage.output_tokens", "eval_count",
    ),
    "cached_tokens": ("cached_tokens", "usage.prompt_tokens_details.cached_tokens", "timings.cache_n"),
    "status": ("status_code", "status", "http_status"),
}  # fmt: skip
# Durations: theirs with the nanoseconds of their unit.
DURATIONS: Mapping[str, tuple[tuple[str, float], ...]] = {
    "duration": (
        ("duration_ms", MS), ("latency_ms", MS), ("elapsed_ms", MS), ("total_ms", MS), ("response_time_ms", MS),
        ("took_ms", MS), ("duration_s", S), ("latency_s", S), ("elapsed_s", S), ("duration_ns", NS),
        ("total_duration", NS),  # Ollama
    ),
    "ttft": (
        ("ttft_ms", MS), ("time_to_first_token_ms", MS), ("metrics.time_to_first_token_ms", MS), ("ttft_s", S),
    ),
    "load": (("load_duration", NS), ("load_ms", MS)),
    "queue": (("queue_ms", MS), ("queue_time_ms", MS), ("metrics.queue_time_ms", MS)),
    "embed": (("embed_ms", MS), ("embedding_ms", MS)),
    "search": (("search_ms", MS), ("retrieval_ms", MS), ("retrieve_ms", MS)),
    "rerank": (("rerank_ms", MS),),
    "prefill": (("prefill_ms", MS), ("timings.prompt_ms", MS), ("prompt_eval_duration", NS)),
    "decode": (("decode_ms", MS), ("timings.predicted_ms", MS), ("eval_duration", NS)),
    "generate": (("generate_ms", MS), ("generation_ms", MS), ("llm_ms", MS), ("metrics.generation_time_ms", MS)),
}  # fmt: skip
UNITLESS = ("duration", "latency", "elapsed", "took", "response_time")
"""Taken only where their value is a text with a unit."""
PARTS = ("load", "queue", "embed", "search", "rerank", "prefill", "decode", "generate")
UNITS: Mapping[str, float] = {"_ms": MS, "_s": S, "_ns": NS}
OURS = (
    *TEXTS, *TIMES, *COUNTS, *(f"{name}{unit}" for name in DURATIONS for unit in UNITS),
)  # fmt: skip


class Fields:
    """Looks fields up in one line, those of the user's map before the common ones.

    Raises:
        BadInput: the map names a field of ours that there is not.
    """

    def __init__(self, given: Mapping[str, str]) -> None:
        self._given: dict[str, list[str]] = {}
        for theirs, ours in given.items():
            if ours not in OURS:
                near = difflib.get_close_matches(ours, OURS, 1)
                hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(OURS)}"
                raise BadInput(f"field map: {ours!r} (for {theirs!r}); expected a field of ours; {hint}")
            self._given.setdefault(ours, []).append(theirs)

    def text(self, line: Mapping[str, Any], ours: str) -> str | None:
        """The first of a field's names that holds a text or a number."""
        for name in (*self._given.get(ours, ()), *TEXTS[ours]):
            value = look_up(line, name)
            if isinstance(value, str) and value:
                return value
            if isinstance(value, int) and not isinstance(value, bool):
                return str(value)
        return None

    def time(self, line: Mapping[str, Any], ours: str) -> Any:
        """The first of a time's names that holds something, as it is printed."""
        names = (*self._given.get(ours, ()), *TIMES[ours])
        return next((value for name in names if (value := look_up(line, name)) not in (None, "")), None)

    def count(self, line: Mapping[str, Any], ours: str) -> int | None:
        """The first of a count's names that holds a number."""
        for name in (*self._given.get(ours, ()), *COUNTS[ours]):
            found = number(look_up(line, name))
            if found is not None and 0 <= found < 1e12:
                return round(found)
        return None

    def duration_ns(self, line: Mapping[str, Any], ours: str) -> int | None:
        """The first of a duration's names that is there, in nanoseconds.

        Raises:
            ValueError: it is there and is no duration.
        """
        given = [(theirs, unit) for end, unit in UNITS.items() for theirs in self._given.get(f"{ours}{end}", ())]
        for name, unit in (*given, *DURATIONS[ours]):
            value = look_up(line, name)
            if value is not None:
                return _duration(name, value, unit)
        if ours == "duration":
            texts = [v for name in UNITLESS if isinstance(v := line.get(name), str)]
            return duration_ns(texts[0]) if texts else None
        return None


def look_up(line: Mapping[str, Any], path: str) -> Any:
    """The value under a dotted path; a key that holds dots itself is found first."""
    if path in line:
        return line[path]
    first, dot, _ = path.partition(".")
    if not dot or first not in line:
        return None
    value: Any = line
    for key in path.split("."):
        if not isinstance(value, Mapping) or key not in value:
            return None
        value = value[key]
    return value


def _duration(name: str, value: Any, unit: float) -> int:
    if isinstance(value, str) and number(value) is None:
        return duration_ns(value)
    found = number(value)
    if found is None or not 0 <= found * unit <= MAX_NS:
        raise ValueError(f"{name} is {str(value)[:40]!r}; expected a duration of at most a week")
    return round(found * unit)
