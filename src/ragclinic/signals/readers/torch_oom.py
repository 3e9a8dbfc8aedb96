"""The text of PyTorch's out-of-memory error, wherever it stands: in a log, a traceback, a service's own message.

Up to 2.0: `CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 24.00 GiB total capacity; 22.50 GiB already
allocated; 10.00 MiB free; 23.10 GiB reserved in total by PyTorch)`. Since 2.1: `Tried to allocate 1.96 GiB. GPU
0 has a total capacity of 79.18 GiB of which 1.08 GiB is free. ... Of the allocated memory 75.31 GiB is
allocated by PyTorch, and 1.83 GiB is reserved by PyTorch but unallocated.`

In the older, reserved *includes* allocated; it is converted, so that both say what is held and not given out. Only
that part can be fragmentation: where it is smaller than what was asked for, the device is simply full.
"""

import re
from collections.abc import Iterator
from typing import BinaryIO

from ragclinic.signals.readers.clock import Sweeps, find_time
from ragclinic.signals.readers.lines import lines
from ragclinic.signals.readers.reader import Origin, Reader, ReadLog, ReadOptions
from ragclinic.signals.readers.torch_names import BYTES, OOM, OOM_ALLOCATED, OOM_FREE, OOM_TOTAL, OOM_UNALLOCATED
from ragclinic.signals.records import Record, Sample

SIZE = r"(?<![\d.])(\d{1,9}(?:\.\d{1,9})?) ?([KMGTP]?i?B|bytes)"
TRIED = re.compile(rf"(?:CUDA|HIP|XPU)? ?out of memory\. Tried to allocate {SIZE}", re.IGNORECASE)
DEVICE = re.compile(r"GPU (\d+)")
PARTS = (  # what it tells, newest wording first
    (OOM_TOTAL, re.compile(rf"has a total capacity of {SIZE}")),
    (OOM_TOTAL, re.compile(rf"has a total capacty of {SIZE}")),  # so spelt in 2.1
    (OOM_TOTAL, re.compile(rf"{SIZE} total capacity")),
    (OOM_FREE, re.compile(rf"of which {SIZE} is free")),
    (OOM_FREE, re.compile(rf"already allocated; {SIZE} free")),
    (OOM_ALLOCATED, re.compile(rf"{SIZE} is allocated by PyTorch")),
    (OOM_ALLOCATED, re.compile(rf"{SIZE} already allocated")),
    (OOM_UNALLOCATED, re.compile(rf"{SIZE} is reserved by PyTorch but unallocated")),
)
RESERVED = re.compile(rf"{SIZE} (?:reserved in total by PyTorch|cached)")


def sniff(head: bytes) -> float:
    """Sure enough of text that holds the error, for readers of logs come first."""
    return 0.5 if b"ut of memory. Tried to allocate" in head else 0.0


def parse_line(line: str) -> dict[str, float] | None:
    """What the error says, in bytes by name; None where the line holds no such error."""
    tried = TRIED.search(line)
    if tried is None:
        return None
    found = {OOM: _bytes(tried)}
    for name, pattern in PARTS:
        part = pattern.search(line)
        if part is not None and name not in found:
            found[name] = _bytes(part)
    reserved = RESERVED.search(line)
    if reserved is not None and OOM_ALLOCATED in found:
        found[OOM_UNALLOCATED] = max(0.0, _bytes(reserved) - found[OOM_ALLOCATED])
    return found


def samples(line: str, time_ns: int) -> Iterator[Sample]:
    """The same as samples, for readers of logs in which the error stands among other lines."""
    device = DEVICE.search(line)
    labels = {"device": device[1]} if device is not None else {}
    return (Sample(time_ns, name, value, labels) for name, value in (parse_line(line) or {}).items())


def read(stream: BinaryIO, origin: Origin, log: ReadLog, _options: ReadOptions) -> Iterator[Record]:
    """Some samples for each error; a row is a line, lines without one are passed over."""
    sweeps = Sweeps(origin, log)
    last_ns: int | None = None
    for here, line in lines(stream, origin, log):
        last_ns = (
            find_time(line, here, log) or last_ns
        )  # a traceback's last line has no time, its first log line has
        if TRIED.search(line) is None:
            log.skip()
            continue
        log.keep()
        yield from samples(line, sweeps.time_ns("oom") if last_ns is None else last_ns)


def _bytes(found: re.Match[str]) -> float:
    return float(found[1]) * BYTES[found[2]]


READER = Reader(
    id="torch-oom",
    versions=("PyTorch up to 2.0", "PyTorch since 2.1"),
    signals=("out of memory",),
    sniff=sniff,
    read=read,
)
