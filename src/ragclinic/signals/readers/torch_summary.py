"""`torch.cuda.memory_summary()`: the table that PyTorch prints, also inside other text such as a log.

From `torch/cuda/memory.py` of 2.x and public captures of 1.x. `Reserved memory` was called so before 1.11 and
is `GPU reserved memory` since; sizes were `KB`, `MB` before 2.0 and are `KiB`, `MiB` since, powers of 1024 in
both. Values are cut to whole units, so they are exact to a part in a thousand at worst.
"""

import re
from collections.abc import Iterator, Mapping
from typing import BinaryIO

from ragclinic.signals.readers.clock import Sweeps
from ragclinic.signals.readers.finite import finite
from ragclinic.signals.readers.lines import lines
from ragclinic.signals.readers.reader import Origin, Reader, ReadLog, ReadOptions
from ragclinic.signals.readers.torch_names import BYTES, COUNTS, PREFIX
from ragclinic.signals.records import Record, Sample

TITLE = re.compile(r"PyTorch CUDA memory summary, device ID (?P<device>\d+)")
FAULTS = re.compile(
    r"CUDA OOMs: (?P<ooms>\d+)\s*\|\s*(?:cudaMalloc|cudaMallocAsync|hipMalloc) retries: (?P<retries>\d+)"
)
ROW = re.compile(r"\|\s*(?P<name>[A-Za-z][A-Za-z -]*?)\s*\|(?P<cells>(?:[^|]*\|){4})")
CELL = re.compile(r"(?P<number>\d+)\s*(?P<unit>[A-Za-z]*)")
RULE = re.compile(r"\|[-=]+\||\|\s*Metric\s*\|.*")

METRICS: Mapping[str, str] = {
    "Allocated memory": "allocated_bytes",
    "Active memory": "active_bytes",
    "Requested memory": "requested_bytes",
    "GPU reserved memory": "reserved_bytes",
    "Reserved memory": "reserved_bytes",
    "Non-releasable memory": "inactive_split_bytes",
    "Allocations": "allocation",
    "Active allocs": "active",
    "GPU reserved segments": "segment",
    "Reserved segments": "segment",
    "Non-releasable allocs": "inactive_split",
    "Oversize allocations": "oversize_allocations",
    "Oversize GPU segments": "oversize_segments",
}
POOLS: Mapping[str, str] = {"from large pool": "large_pool", "from small pool": "small_pool"}
MAX_DIGITS = 15
COLUMNS = ("current", "peak", "allocated", "freed")


def sniff(head: bytes) -> float:
    """Sure of its title."""
    return 0.9 if b"PyTorch CUDA memory summary, device ID" in head else 0.0


def parse_cell(text: str, of_bytes: bool) -> float:
    """A cell in bytes, or as a count.

    Raises:
        ValueError: no number, or a unit that is not known.
    """
    found = CELL.fullmatch(text.strip())
    scale = None if found is None else (BYTES if of_bytes else COUNTS).get(found["unit"])
    if found is None or scale is None:
        raise ValueError(
            f"{text.strip()!r}; expected a number with {'B, KiB, MiB, GiB' if of_bytes else 'K or M'}"
        )
    return finite(found["number"], scale)


def read(stream: BinaryIO, origin: Origin, log: ReadLog, _options: ReadOptions) -> Iterator[Record]:
    """Four samples a row of the table; a row is a row, what stands outside the table is passed over."""
    device, metric = "", ""
    sweeps = Sweeps(origin, log)
    time_ns = 0
    for here, line in lines(stream, origin, log):
        title, faults, row = TITLE.search(line), FAULTS.search(line), ROW.search(line)
        if title is not None:
            device, metric = title["device"], ""
            time_ns = sweeps.time_ns(device)
        if title is not None or RULE.search(line) or not device or (faults is None and row is None):
            log.skip()
            continue
        if faults is not None:
            log.keep()
            for name, value in (("num_ooms", faults["ooms"]), ("num_alloc_retries", faults["retries"])):
                yield Sample(time_ns, PREFIX + name, float(value[:MAX_DIGITS]), {"device": device})
        elif row is not None:
            metric = METRICS.get(row["name"], metric)
            pool = POOLS.get(row["name"], "all" if row["name"] in METRICS else None)
            if pool is None or not metric:
                log.reject("unknown row", here, f"{row['name']!r}; expected a row of memory_summary()")
                continue
            try:
                values = [parse_cell(c, metric.endswith("_bytes")) for c in row["cells"].split("|")[:4]]
            except ValueError as error:
                log.reject("not a value", here, str(error))
                continue
            log.keep()
            for column, value in zip(COLUMNS, values, strict=True):
                yield Sample(time_ns, f"{PREFIX}{metric}.{pool}.{column}", value, {"device": device})


READER = Reader(
    id="torch-memory-summary",
    versions=("PyTorch 1.x", "PyTorch 2.x"),
    signals=("allocator memory", "fragmentation", "out of memory"),
    sniff=sniff,
    read=read,
)
