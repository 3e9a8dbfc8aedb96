"""The log of the Ollama server: one `[GIN]` line a request, model loads, truncation, layers that did not fit.

Read: `server/sched.go`, `llm/llama_server.go`, `ml/device.go` and `discover` of 2026-08; lines of 2025 from public
logs. A GIN line is
printed when the answer is complete and holds the whole duration, queue included, to the second of its end.
Loads and truncations come before it and are laid into the request they fall into. Since 0.30 the lines of
llama.cpp's server are among them and give prefill, decode and tokens; before, only the API's answer has them
(see `json_lines`). `--verbose` of the client is another format.
"""

import re
from collections import deque
from collections.abc import Iterator, Mapping
from typing import BinaryIO

from ragclinic.signals.readers.clock import find_time
from ragclinic.signals.readers.durations import duration_ns
from ragclinic.signals.readers.finite import count
from ragclinic.signals.readers.lines import lines
from ragclinic.signals.readers.log_common import LineClock, Part, request_spans, trace_id
from ragclinic.signals.readers.log_llamacpp import SlotLog
from ragclinic.signals.readers.ollama_events import event_samples, slog_fields
from ragclinic.signals.readers.reader import Origin, Reader, ReadLog, ReadOptions
from ragclinic.signals.readers.torch_oom import TRIED, samples
from ragclinic.signals.records import AttributeValue, Record, Sample, Span

SECOND_NS = 1_000_000_000
ANSI = re.compile(r"\x1b\[[0-9;]*m")
GIN = re.compile(
    r"\[GIN\] (?P<time>\d{4}/\d\d/\d\d - \d\d:\d\d:\d\d) \|\s*(?P<status>\d{3}) \|\s*(?P<took>\S+) \|[^|]*\|"
    r"\s*(?P<method>[A-Z]+)\s+\"(?P<path>[^\"?]*)"
)
OPERATIONS: Mapping[str, str] = {
    "/api/chat": "chat",
    "/v1/chat/completions": "chat",
    "/v1/messages": "chat",
    "/v1/responses": "chat",
    "/api/generate": "text_completion",
    "/v1/completions": "text_completion",
    "/api/embed": "embeddings",
    "/api/embeddings": "embeddings",
    "/v1/embeddings": "embeddings",
}
LOADED = re.compile(r"(?:llama runner|llama-server|runner) started in (?P<seconds>[\d.]+) seconds")
TRUNCATED = "truncating input prompt"
HEAD = re.compile(
    rb"\[GIN\] \d{4}/\d\d/\d\d - |source=(?:sched|server|routes|runner|ggml|llama_server|types|images)\.go:\d+ "
)
MAX_PENDING = 1000


def sniff(head: bytes) -> float:
    """Sure of GIN lines and of Ollama's source files."""
    return 0.96 if HEAD.search(head) else 0.0


def read(stream: BinaryIO, origin: Origin, log: ReadLog, _options: ReadOptions) -> Iterator[Record]:
    """Spans of requests, samples of everything else; a row is a line."""
    server = _Server(origin, log)
    for here, line in lines(stream, origin, log):
        try:
            found = server.feed(here, ANSI.sub("", line))
        except ValueError as error:
            log.reject("broken line", here, str(error))
            continue
        if found is None:
            log.skip()
            continue
        log.keep()
        yield from found
    yield from server.close()
    log.lacks("queue", "none is printed: set OLLAMA_NUM_PARALLEL and compare durations, or put a gateway in front")
    log.lacks("cached tokens", "Ollama reports none")


class _Server:
    """What was seen and waits for the request it belongs to."""

    def __init__(self, origin: Origin, log: ReadLog) -> None:
        self._origin, self._log = origin, log
        self._clock = LineClock(origin, log)
        self._slots = SlotLog(origin, log)
        self._loads: deque[Part] = deque(maxlen=MAX_PENDING)
        self._truncations: deque[tuple[int, dict[str, AttributeValue]]] = deque(maxlen=MAX_PENDING)
        self._answers: deque[list[Span]] = deque(maxlen=MAX_PENDING)
        self._requests = 0

    def feed(self, here: Origin, line: str) -> list[Record] | None:
        """The records of a line, None where it is none of Ollama's."""
        self._clock.see(line)
        gin = GIN.search(line)
        if gin is not None:
            return list(self._request(gin, here)) or None
        if "level=" not in line or "msg=" not in line:
            return self._other(here, line)
        return self._event(here, slog_fields(line)) or None

    def close(self) -> list[Record]:
        """Answers of llama.cpp that no GIN line followed."""
        self._answers.extend(_by_trace(self._slots.close()))
        return [span for answer in self._answers for span in answer]

    def _other(self, here: Origin, line: str) -> list[Record] | None:
        found = self._slots.feed(here, line)
        if found is not None:
            self._answers.extend(_by_trace([r for r in found if isinstance(r, Span)]))
            time_ns = self._clock.time_ns(here)
            return [Sample(time_ns, r.name, r.value, r.labels) for r in found if isinstance(r, Sample)]
        return list(samples(line, self._clock.time_ns(here))) if TRIED.search(line) else None

    def _event(self, here: Origin, fields: dict[str, str]) -> list[Record]:
        message = fields.get("msg", "")
        time_ns = self._clock.time_ns(here)
        loaded = LOADED.search(message)
        if loaded is not None:
            took_ns = duration_ns(f"{loaded['seconds']}s")
            self._loads.append(Part("load", time_ns - took_ns, time_ns))
            return [Sample(time_ns, "ollama.log.model_load_s", took_ns / SECOND_NS)]
        found = event_samples(message, fields)
        if message == TRUNCATED:
            self._truncations.append((time_ns, _truncation(fields)))
        return [Sample(time_ns, name, value, labels) for name, value, labels in found]

    def _request(self, gin: re.Match[str], here: Origin) -> Iterator[Span]:
        operation = OPERATIONS.get(gin["path"].rstrip("/"))
        if operation is None or gin["method"] != "POST":
            return
        took_ns = duration_ns(gin["took"])
        end_ns = find_time(gin["time"].replace(" - ", " "), here, self._log)
        if end_ns is None:
            raise ValueError(f"{gin['time']!r}; expected a date")
        start_ns = end_ns - took_ns
        attributes: dict[str, AttributeValue] = {
            "gen_ai.operation.name": operation,
            "http.request.method": gin["method"],
            "http.response.status_code": int(gin["status"]),
            "url.path": gin["path"],
        }
        parts = [
            Part("load", max(p.start_ns, start_ns), min(p.end_ns, end_ns)) for p in self._taken(start_ns, end_ns)
        ]
        if operation != "embeddings":
            for time_ns, truncation in list(self._truncations):
                if start_ns - SECOND_NS <= time_ns <= end_ns + SECOND_NS:
                    attributes |= truncation
                    self._truncations.remove((time_ns, truncation))
            parts += self._answer(end_ns, start_ns, attributes)
        error = f"HTTP {gin['status']}" if gin["status"] >= "400" else None
        self._requests += 1
        # A prefix of its own: the numbers of llama.cpp's requests in the same file begin at one as well.
        trace = trace_id(self._origin, -self._requests)
        yield from request_spans(
            trace, f"POST {gin['path']}", "ollama", start_ns, end_ns, parts, attributes, error
        )

    def _taken(self, start_ns: int, end_ns: int) -> list[Part]:
        """The loads that ended during a request; each belongs to the first request that it delayed."""
        taken = [p for p in self._loads if start_ns - SECOND_NS <= p.end_ns <= end_ns + SECOND_NS]
        for part in taken:
            self._loads.remove(part)
        return [p for p in taken if max(p.start_ns, start_ns) < min(p.end_ns, end_ns)]

    def _answer(self, end_ns: int, start_ns: int, attributes: dict[str, AttributeValue]) -> list[Part]:
        """The stages of the oldest answer of llama.cpp that waits for its GIN line; both end together."""
        if not self._answers:
            return []
        root, *children = self._answers.popleft()
        shift_ns = end_ns - root.end_ns
        for name, value in root.attributes.items():
            attributes.setdefault(name, value)
        return [
            Part(child.name, max(child.start_ns + shift_ns, start_ns), max(child.end_ns + shift_ns, start_ns))
            for child in children
        ]


def _truncation(fields: Mapping[str, str]) -> dict[str, AttributeValue]:
    known = {"limit": "ragclinic.window_tokens", "prompt": "ollama.prompt_tokens_before_truncation"}
    return {name: count(fields[key]) for key, name in known.items() if fields.get(key, "").isdigit()}


def _by_trace(spans: list[Span]) -> list[list[Span]]:
    found: dict[str, list[Span]] = {}
    for span in spans:
        found.setdefault(span.trace_id, []).append(span)
    return list(found.values())


READER = Reader(
    id="ollama-log",
    versions=("Ollama of 2025-04 to 2026-08",),
    signals=("request spans", "model loads", "truncation", "offloaded layers", "out of memory"),
    sniff=sniff,
    read=read,
)
