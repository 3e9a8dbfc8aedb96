"""`perf script`: a block of lines for each sample, a header and its stack, the innermost frame first.

From own runs of perf 6.1. A sample becomes one record with its stack folded,
outermost frame first, as flame graphs want it; the value is the sample's period (events since the sample
before). Times are of the machine's monotonic clock, which has no date: the first sample is put at the time at
which the file was written.
"""

import re
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from ragclinic.signals.readers.finite import finite
from ragclinic.signals.readers.lines import lines
from ragclinic.signals.readers.reader import Origin, Reader, ReadLog, ReadOptions
from ragclinic.signals.records import Record, Sample

NAME = "perf.samples"
HEADER = re.compile(
    r"(?P<comm>\S.*?)\s+(?P<pid>\d+)(?:/(?P<tid>\d+))?\s+(?:\[\d+\]\s+)?(?:\S{4,5}\s+)?(?P<seconds>\d+\.\d+):\s+"
    r"(?:(?P<period>\d+)\s+)?(?P<event>\S+):(?:\s+.*)?"
)
FRAME = re.compile(
    r"\s+(?P<address>[0-9a-f]+)\s+(?P<symbol>.+?)(?:\+0x[0-9a-f]+)?\s+\((?P<file>[^()]*|\[[^\]]*\])\)\s*"
)
SIDE = re.compile(r"PERF_RECORD_\w+")
HEAD_SAMPLE = re.compile(rb"^\S.*?\s\d+(?:/\d+)?\s+(?:\[\d+\]\s+)?\d+\.\d{6,9}:\s.*:\s*$", re.MULTILINE)
HEAD_FRAME = re.compile(rb"^\s+[0-9a-f]{3,16} \S.* \(.*\)\s*$", re.MULTILINE)
UNKNOWN = "[unknown]"
MAX_FRAMES = 1000
MAX_S = 1e9
"""Thirty years of uptime."""


class Head(NamedTuple):
    """The header line of a sample."""

    comm: str
    pid: str
    seconds: float
    period: float
    event: str


def sniff(head: bytes) -> float:
    """Sure of a header line with a frame below it."""
    return 0.9 if HEAD_SAMPLE.search(head) and HEAD_FRAME.search(head) else 0.0


def parse_header(line: str) -> Head | None:
    """The header, or None where the line is none."""
    found = HEADER.fullmatch(line.strip())
    if found is None:
        return None
    try:
        period, seconds = finite(found["period"] or "1"), finite(found["seconds"])
    except ValueError:
        return None
    return Head(found["comm"], found["pid"], seconds, period, found["event"]) if seconds < MAX_S else None


def parse_frame(line: str) -> str | None:
    """The function of a stack line, its file where the function is unknown; None where the line is none."""
    found = FRAME.fullmatch(line)
    if found is None:
        return None
    if found["symbol"] != UNKNOWN:
        return found["symbol"].replace(";", ":")
    file = found["file"].strip("[]").rpartition("/")[2]
    return f"[{file}]" if file and file != "unknown" else UNKNOWN


def read(stream: BinaryIO, origin: Origin, log: ReadLog, _options: ReadOptions) -> Iterator[Record]:
    """One record a sample; a row is a sample, or a line that belongs to none."""
    head: Head | None = None
    first_s: float | None = None
    frames: list[str] = []
    written_ns = origin.modified_ns or 0
    for here, line in lines(stream, origin, log):
        frame = parse_frame(line) if line[0] in " \t" else None
        if frame is not None and head is not None:
            if len(frames) < MAX_FRAMES:
                frames.append(frame)
            continue
        if head is not None:
            yield _sample(head, frames, written_ns, first_s or head.seconds)
        head, frames = None, []
        if line.startswith("#") or SIDE.search(line):
            log.skip()
            continue
        head = parse_header(line)
        if head is None:
            log.reject("not a sample", here, f"{line.strip()!r}; expected 'comm pid time: event:'")
            continue
        log.keep()
        if first_s is None:
            first_s = head.seconds
            log.note(
                "perf's clock has no date: the first sample was put at the time at which the file was written"
            )
    if head is not None:
        yield _sample(head, frames, written_ns, first_s or head.seconds)


def _sample(head: Head, frames: list[str], written_ns: int, first_s: float) -> Sample:
    stack = ";".join([head.comm.replace(";", ":"), *reversed(frames)])
    labels = {"stack": stack, "pid": head.pid, "event": head.event}
    return Sample(written_ns + round((head.seconds - first_s) * 1e9), NAME, head.period, labels)


READER = Reader(
    id="perf-script",
    versions=("perf 6.1",),
    signals=("cpu stacks",),
    sniff=sniff,
    read=read,
)
