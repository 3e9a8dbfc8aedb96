"""What readers of server logs share: the loop over lines whose samples stand in themselves, and requests as spans.

A log mixes lines of a server with those of everything else in its process; only lines that a server's parser knows
are kept, out-of-memory errors are taken from all of them, the rest is passed over and counted.
"""

import hashlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import BinaryIO, NamedTuple

from ragclinic.signals.readers import torch_oom
from ragclinic.signals.readers.clock import Sweeps, find_time
from ragclinic.signals.readers.lines import lines
from ragclinic.signals.readers.reader import Origin, ReadLog
from ragclinic.signals.records import AttributeValue, Sample, Span
from ragclinic.signals.stages import STAGE

REMEMBERED_LINES = 60
"""How far back a traceback's last line looks for a line with a time."""

Found = list[tuple[str, float, dict[str, str]]]
"""The samples of a line: name, value, labels."""
ParseLine = Callable[[str], Found | None]
"""`None` is *not mine*; `ValueError` is *mine, and broken*."""


def read_samples(stream: BinaryIO, origin: Origin, log: ReadLog, parse: ParseLine) -> Iterator[Sample]:
    """The samples of all lines that `parse` knows, and of out-of-memory errors; a row is a line."""
    clock = LineClock(origin, log)
    for here, line in lines(stream, origin, log):
        try:
            found = parse(line)
        except ValueError as error:
            log.reject("broken line", here, str(error))
            continue
        clock.see(line)
        if found is None and not torch_oom.TRIED.search(line):
            log.skip()
            continue
        log.keep()
        time_ns = clock.time_ns(here)
        for name, value, labels in found or ():
            yield Sample(time_ns, name, value, labels)
        yield from torch_oom.samples(line, time_ns)


class LineClock:
    """The time of a line: its own, or the one of the last line before it that has one."""

    def __init__(self, origin: Origin, log: ReadLog) -> None:
        self._recent: deque[str] = deque(maxlen=REMEMBERED_LINES)
        self._sweeps = Sweeps(origin, log)
        self._log = log
        self._last_ns: int | None = None

    def see(self, line: str) -> None:
        """Remembers a line; its time is only looked for when it is needed."""
        self._recent.append(line)

    def time_ns(self, here: Origin) -> int:
        """The time of the line seen last."""
        found = next((t for line in reversed(self._recent) if (t := find_time(line, here, self._log))), None)
        self._recent.clear()
        if found is not None:
            self._last_ns = found
        return self._sweeps.time_ns("line") if self._last_ns is None else self._last_ns


class Part(NamedTuple):
    """A stage of a request with its own clock times and attributes."""

    stage: str
    start_ns: int
    end_ns: int
    attributes: Mapping[str, AttributeValue] = {}


def request_spans(
    trace_id: str,
    name: str,
    service: str,
    start_ns: int,
    end_ns: int,
    parts: list[Part],
    attributes: Mapping[str, AttributeValue],
    error: str | None = None,
) -> list[Span]:
    """One request as a root span and a child for each of its stages."""
    root = Span(trace_id, f"{trace_id[:12]}root", None, name, start_ns, end_ns, service, error, dict(attributes))
    return [
        root,
        *(
            Span(
                trace_id,
                f"{trace_id[:12]}{number:04x}",
                root.span_id,
                part.stage,
                part.start_ns,
                part.end_ns,
                service,
                None,
                {STAGE: part.stage, **part.attributes},
            )
            for number, part in enumerate(parts)
        ),
    ]


def trace_id(origin: Origin, number: int) -> str:
    """An id for the request of that number in that file, the same each time the file is read."""
    return hashlib.blake2b(f"{origin.path}:{number}".encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
