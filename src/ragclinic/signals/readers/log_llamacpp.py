"""The log of llama.cpp's server: slot lines and timings of each request, sizes of model, cache and window.

From own runs of llama.cpp 2026-10 and public logs since 2024. Prefixes: `1.33.019.326 I slot print_timing:
id  3 | task 0 | ` (minutes, seconds, milliseconds, microseconds since the start), before 2026 without time and
level; then the three timings were one record of several lines. A time put before a line by Docker or journald
is taken; the server's own has no date and is laid from the time at which the file was written. Each request
ends in spans; time in the server's queue is not printed, so a request begins where its slot begins.
"""

import re
from collections.abc import Iterator
from typing import BinaryIO

from ragclinic.signals.readers.clock import DATED, find_time
from ragclinic.signals.readers.finite import finite
from ragclinic.signals.readers.lines import lines
from ragclinic.signals.readers.llamacpp_slots import SIMILAR, Task
from ragclinic.signals.readers.log_common import Found, trace_id
from ragclinic.signals.readers.reader import Origin, Reader, ReadLog, ReadOptions
from ragclinic.signals.readers.torch_names import BYTES
from ragclinic.signals.records import Record, Sample, Span

SLOT = re.compile(
    r"\bslot\s+(?P<function>[\w:()]+?):\s+id\s+(?P<slot>-?\d+) \| task (?P<task>-?\d+) \|\s?(?P<text>.*)"
)
SINCE_START = re.compile(r"(?<!\d)(?P<minutes>\d{1,7})\.(?P<seconds>\d\d)\.(?P<ms>\d{3})\.(?P<us>\d{3}) [DIWE] ")
TIMING = re.compile(r"\s*(?:prompt eval|eval|total) time =|\s*draft acceptance|\s*graphs reused =")
MAX_OPEN = 4096
RESTART_NS = 1_000_000_000

SIZE = r"(?P<size>[\d.]+) (?P<unit>[KMG]iB)"
# One line, one thing: pattern, name; the groups are value or size, device and label.
EVENTS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"offloaded (?P<value>\d+)/\d+ layers to GPU"), "llamacpp.log.layers_offloaded"),
    (re.compile(r"offloaded \d+/(?P<value>\d+) layers to GPU"), "llamacpp.log.layers_total"),
    (re.compile(rf"(?P<device>\w+) model buffer size =\s*{SIZE}"), "llamacpp.log.model_buffer_bytes"),
    (re.compile(rf"(?P<device>\w+) KV buffer size =\s*{SIZE}"), "llamacpp.log.kv_buffer_bytes"),
    (re.compile(rf"(?P<device>\w+) compute buffer size =\s*{SIZE}"), "llamacpp.log.compute_buffer_bytes"),
    (re.compile(r"llama_kv_cache\w*: size =.*?\(\s*(?P<value>\d+) cells"), "llamacpp.log.kv_cells"),
    (re.compile(r"n_slots = (?P<value>\d+)"), "llamacpp.log.slots"),
    (re.compile(r"n_slots = \d+, n_ctx_slot = (?P<value>\d+)"), "llamacpp.log.window_tokens"),
    (re.compile(r"n_ctx_train\s+= (?P<value>\d+)"), "llamacpp.log.trained_window_tokens"),
    (
        re.compile(r"request \((?P<value>\d+) tokens\) exceeds the available context"),
        "llamacpp.log.context_exceeded",
    ),
)
TELLING = ("offloaded", "buffer size", "llama_kv_cache", "n_slots", "n_ctx_train", "exceeds the available")
HEAD = re.compile(
    rb"\bslot\s+\w+(?:\(\))?:\s+id\s+-?\d+ \| task -?\d+ \|"
    rb"|^(?:[\d.]+ [DIWE] )?(?:load_tensors|llama_kv_cache|srv\s+\w+): ",
    re.MULTILINE,
)


def sniff(head: bytes) -> float:
    """Sure of slot lines and of the loader's lines."""
    return 0.9 if HEAD.search(head) else 0.0


def parse_line(line: str) -> Found | None:
    """The samples of a line that stands for itself; None where it is a slot's or none of ours."""
    if not any(word in line for word in TELLING):
        return None
    found: Found = []
    for pattern, name in EVENTS:
        event = pattern.search(line)
        if event is not None:
            parts = event.groupdict()
            value = finite(parts["size"], BYTES[parts["unit"]]) if "size" in parts else finite(parts["value"])
            found.append((name, value, {"device": parts["device"]} if "device" in parts else {}))
    return found or None


def read(stream: BinaryIO, origin: Origin, log: ReadLog, _options: ReadOptions) -> Iterator[Record]:
    """Spans of requests and samples of sizes; a row is a line."""
    slots = SlotLog(origin, log)
    for here, line in lines(stream, origin, log):
        try:
            found = slots.feed(here, line)
        except ValueError as error:
            log.reject("broken line", here, str(error))
            continue
        if found is None:
            log.skip()
            continue
        log.keep()
        yield from found
    yield from slots.close()
    log.lacks("queue", "start llama-server with --metrics and scrape it: llamacpp:requests_deferred")


class SlotLog:
    """Gathers the lines of each slot's task into requests; for logs that hold llama.cpp's lines among others."""

    def __init__(self, origin: Origin, log: ReadLog) -> None:
        self._origin, self._log = origin, log
        self._open: dict[tuple[int, int], Task] = {}
        self._selected: dict[int, tuple[float, float | None]] = {}
        self._printing: Task | None = None
        self._base_ns = origin.modified_ns or 0
        self._since_start_ns = 0
        self._end_ns = self._base_ns
        self._window: int | None = None
        self._requests = 0

    def feed(self, here: Origin, line: str) -> list[Record] | None:
        """What a line completes, an empty list where it only adds to a request, None where it is none of ours."""
        slot = SLOT.search(line)
        if slot is None:
            return self._continued(here, line) if TIMING.match(line) else self._samples(here, line)
        time_ns = self._time_ns(here, line)
        if int(slot["task"]) < 0:
            similar = SIMILAR.search(slot["text"])
            if similar is None:
                return None
            kept = similar["keep"]
            self._selected[int(slot["slot"])] = float(similar["similar"]), None if kept is None else float(kept)
            return []
        key = int(slot["slot"]), int(slot["task"])
        done = self._make_room(key)
        task = self._open.setdefault(key, Task(*key))
        if task.similarity is None and key[0] in self._selected:
            task.similarity, task.kept_share = self._selected.pop(key[0])
        printing = not slot["text"].strip()
        self._printing = task if printing else None
        known = printing or task.add(slot["text"], time_ns)
        if task.complete:
            return [*done, *self._finish(key)]
        return done if known or done else None

    def close(self) -> list[Span]:
        """Requests that were finished in all but the last line; those still running are left out and noted."""
        done = [
            span for key in list(self._open) if self._open[key].timed_ms is not None for span in self._finish(key)
        ]
        if self._open:
            self._log.note(f"{len(self._open)} requests were still running where the log ends")
        return done

    def _continued(self, here: Origin, line: str) -> list[Record] | None:
        """A timing without a prefix: part of a record of several lines."""
        task = self._printing
        if task is None:
            return None
        if not task.add(line, self._time_ns(here, line)) and "graphs reused" not in line:
            return None
        return list(self._finish((task.slot, task.number))) if task.complete else []

    def _samples(self, here: Origin, line: str) -> list[Record] | None:
        found = parse_line(line)
        if found is None:
            return None
        time_ns = self._time_ns(here, line)
        when = self._base_ns if time_ns is None else time_ns
        for name, value, _ in found:
            if name == "llamacpp.log.window_tokens":
                self._window = int(value)
        return [Sample(when, name, value, labels) for name, value, labels in found]

    def _make_room(self, key: tuple[int, int]) -> list[Record]:
        """A slot that takes another task has finished the one before, even where its last line is missing."""
        stale = [old for old in self._open if old[0] == key[0] and old != key]
        stale += list(self._open)[: max(0, len(self._open) - MAX_OPEN)]
        return [span for old in stale if old in self._open for span in self._finish(old)]

    def _finish(self, key: tuple[int, int]) -> list[Span]:
        task = self._open.pop(key)
        self._printing = None
        if task.timed_ms is None and (task.ended_ns is None or task.launched_ns is None):
            return []  # nothing is known of it but that it was there
        end_ns = task.ended_ns
        if end_ns is None:
            self._log.note("the log prints no times: its requests were laid one after another")
            end_ns = self._end_ns + round((task.timed_ms or 0) * 1e6)
        self._end_ns = max(self._end_ns, end_ns)
        self._requests += 1
        return task.spans(trace_id(self._origin, self._requests), end_ns, self._window)

    def _time_ns(self, here: Origin, line: str) -> int | None:
        if DATED.search(line):
            return find_time(line, here, self._log)
        found = SINCE_START.search(line)
        if found is None:
            return None
        since_s = int(found["minutes"]) * 60 + int(found["seconds"])
        since_ns = since_s * 1_000_000_000 + int(found["ms"]) * 1_000_000 + int(found["us"]) * 1000
        if since_ns + RESTART_NS < self._since_start_ns:  # the server was started again, into the same file
            self._base_ns += self._since_start_ns
            self._since_start_ns = 0
        self._since_start_ns = max(since_ns, self._since_start_ns)
        self._log.note("the server's times count from its start, which was put at the time the file was written")
        return self._base_ns + since_ns


READER = Reader(
    id="llamacpp-log",
    versions=("llama.cpp server of 2024 to 2026-10",),
    signals=("request spans", "prefix hits", "kv size", "offloaded layers", "truncation"),
    sniff=sniff,
    read=read,
)
