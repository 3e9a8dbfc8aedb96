"""`ollama ps`: the loaded models, their size, and how much of each lies on the GPU.

Read: `cmd/cmd.go` of 2026-08. `PROCESSOR` is `100% GPU`, `100% CPU`, or `5%/95% CPU/GPU` with the
CPU first; Older versions have no `CONTEXT`. Sizes are decimal. Several tables in a row (from `watch`) keep
their order.
"""

import re
from collections.abc import Iterator, Mapping
from typing import BinaryIO

from ragclinic.signals.readers.clock import Sweeps
from ragclinic.signals.readers.finite import count, finite
from ragclinic.signals.readers.lines import lines
from ragclinic.signals.readers.reader import Origin, Reader, ReadLog, ReadOptions
from ragclinic.signals.records import Record, Sample

HEADER = re.compile(r"NAME\s+ID\s+SIZE\s+PROCESSOR\s+(?:CONTEXT\s+)?UNTIL\s*")
ROW = re.compile(
    r"(?P<name>\S+)\s+(?P<id>[0-9a-f]{6,64})\s+(?P<size>[\d.]+) (?P<unit>[KMGT]?B)\s+"
    r"(?P<processor>\d+%(?:/\d+%)? (?:CPU/GPU|CPU|GPU)|Unknown)\s+(?:(?P<context>\d+)\s+)?(?P<until>\S.*)"
)
UNITS: Mapping[str, float] = {"B": 1.0, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}


def sniff(head: bytes) -> float:
    """Sure of its header."""
    return 0.95 if HEADER.search(head[:8192].decode("utf-8", "replace")) else 0.0


def parse_row(line: str) -> tuple[str, list[tuple[str, float]]]:
    """The model, and name and value of what is said of it.

    Raises:
        ValueError: not a row of the table.
    """
    found = ROW.fullmatch(line.strip())
    if found is None:
        raise ValueError(f"{line.strip()[:80]!r}; expected NAME ID SIZE PROCESSOR [CONTEXT] UNTIL")
    values = [("ollama.ps.size_bytes", finite(found["size"], UNITS[found["unit"]]))]
    if found["processor"] != "Unknown":
        values.append(("ollama.ps.gpu_share", _gpu_share(found["processor"])))
    if found["context"]:
        values.append(("ollama.ps.window_tokens", float(count(found["context"]))))
    return found["name"], values


def read(stream: BinaryIO, origin: Origin, log: ReadLog, _options: ReadOptions) -> Iterator[Record]:
    """Some samples a model; a row is a model."""
    sweeps = Sweeps(origin, log)
    for here, line in lines(stream, origin, log):
        if HEADER.fullmatch(line.strip()):
            log.skip()
            continue
        try:
            name, values = parse_row(line)
        except ValueError as error:
            log.reject("not a row", here, str(error))
            continue
        log.keep()
        time_ns = sweeps.time_ns(name)
        yield from (Sample(time_ns, metric, value, {"model": name}) for metric, value in values)


def _gpu_share(processor: str) -> float:
    shares, _, kinds = processor.partition(" ")
    percent = finite(shares.split("/")[-1].rstrip("%"))
    if percent > 100:
        raise ValueError(f"{processor!r}; expected at most 100%")
    return percent / 100 if kinds.endswith("GPU") else 1 - percent / 100


READER = Reader(
    id="ollama-ps",
    versions=("Ollama to 2026-08",),
    signals=("offloaded share", "window"),
    sniff=sniff,
    read=read,
)
