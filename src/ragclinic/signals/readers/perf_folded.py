"""Folded stacks: `outer;inner;innermost 42`, a line for each stack, as stackcollapse and py-spy raw make them.

The number is a count of samples, or whatever the producer weighed by; it has no time.
"""

import re
from collections.abc import Iterator
from typing import BinaryIO

from ragclinic.signals.readers.finite import finite
from ragclinic.signals.readers.lines import lines
from ragclinic.signals.readers.reader import Origin, Reader, ReadLog, ReadOptions
from ragclinic.signals.records import Record, Sample

NAME = "perf.samples"
LINE = re.compile(r"(?P<stack>\S.*?)\s+(?P<weight>\d+(?:\.\d+)?)")
LOOKED_AT = 20


def sniff(head: bytes) -> float:
    """Fairly sure where all lines but one end in a number and most have several frames."""
    rows = head.decode("utf-8", "replace").splitlines()
    rows = [row for row in (rows if len(rows) <= LOOKED_AT else rows[:LOOKED_AT]) if row.strip()]
    stacks = [found["stack"] for row in rows if (found := LINE.fullmatch(row.strip())) is not None]
    deep = sum(1 for stack in stacks if ";" in stack and not stack.endswith("}"))
    return 0.6 if len(stacks) >= max(1, len(rows) - 1) and deep * 2 > len(rows) else 0.0


def parse_line(line: str) -> tuple[str, float]:
    """The stack and its weight.

    Raises:
        ValueError: not a stack with a number behind it.
    """
    found = LINE.fullmatch(line.strip())
    if found is None:
        raise ValueError(f"{line.strip()!r}; expected 'outer;inner 42'")
    return found["stack"], finite(found["weight"])


def read(stream: BinaryIO, origin: Origin, log: ReadLog, _options: ReadOptions) -> Iterator[Record]:
    """One record a line."""
    for here, line in lines(stream, origin, log):
        try:
            stack, weight = parse_line(line)
        except ValueError as error:
            log.reject("not a folded stack", here, str(error))
            continue
        log.keep()
        yield Sample(origin.modified_ns or 0, NAME, weight, {"stack": stack})


READER = Reader(
    id="folded-stacks",
    versions=("stackcollapse-perf.pl", "py-spy raw"),
    signals=("cpu stacks",),
    sniff=sniff,
    read=read,
)
