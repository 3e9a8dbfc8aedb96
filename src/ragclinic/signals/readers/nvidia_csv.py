"""`nvidia-smi --query-gpu=... --format=csv -lms N`: any columns, with or without units, any number of devices.

As public captures of drivers 470 to 580 show it. The header names the columns and, in brackets, their units;
with `nounits` the values lack them. Throttle columns are `clocks_throttle_reasons.*` up to driver 530 and
`clocks_event_reasons.*` since. This query has no PCIe throughput: `nvidia-smi dmon -s t` or `-q` prints it.
"""

import csv
import re
from collections.abc import Iterator, Sequence
from typing import BinaryIO, NamedTuple

from ragclinic.signals.readers.clock import Sweeps, find_time
from ragclinic.signals.readers.lines import lines
from ragclinic.signals.readers.nvidia_names import NOT_REASONS, THROTTLED, active_reasons, number, public_name
from ragclinic.signals.readers.reader import Origin, Reader, ReadLog, ReadOptions
from ragclinic.signals.records import Record, Sample

COLUMN = re.compile(r"(?P<name>[a-z][a-z0-9_]*(?:\.[a-z0-9_]+)*)(?: \[(?P<unit>[^\]]*)\])?")
TELLING = ("memory.", "utilization.", "clocks", "power.", "temperature.", "pcie.", "fan.", "pstate")
IDS = ("uuid", "gpu_uuid", "pci.bus_id", "gpu_bus_id", "index", "serial", "gpu_serial")
NAMES = ("name", "gpu_name")
REASON_PREFIXES = ("clocks_event_reasons", "clocks_throttle_reasons")
NOT_MEASURED = {
    "timestamp",
    "driver_version",
    "count",
    "pstate",
    "compute_mode",
    "persistence_mode",
    "display_active",
}
FAILED = ("NVIDIA-SMI has failed", "No devices were found", "Failed to initialize NVML", "Unable to determine")
LACKING = {
    "memory.used": (
        "device memory",
        "nvidia-smi --query-gpu=timestamp,index,memory.used,memory.total --format=csv -lms 500",
    ),
    "clocks_event_reasons.active": ("throttle reasons", "add clocks_event_reasons.active,clocks.sm,clocks.max.sm"),
    "utilization.gpu": ("device use", "add utilization.gpu,utilization.memory to --query-gpu"),
}


class Column(NamedTuple):
    """A column of the header."""

    name: str
    unit: str


def sniff(head: bytes) -> float:
    """Sure of a first line that is a list of nvidia-smi's columns."""
    first = head.lstrip()[:4096].split(b"\n", 1)[0].decode("utf-8", "replace").strip()
    return 0.95 if parse_header(first) is not None else 0.0


def parse_header(line: str) -> tuple[Column, ...] | None:
    """The columns, or None where the line is no header."""
    found = [COLUMN.fullmatch(part.strip()) for part in line.split(",")]
    columns = tuple(Column(f["name"], f["unit"] or "") for f in found if f is not None)
    telling = any(column.name.startswith(TELLING) and "." in column.name for column in columns)
    return columns if len(columns) == len(found) and telling else None


def parse_row(
    columns: Sequence[Column], line: str
) -> tuple[dict[str, str], list[tuple[str, float, dict[str, str]]]]:
    """The cells by column, and name, value and further labels of what was measured, in base units.

    Raises:
        ValueError: another number of cells than columns, or a cell that is no value.
    """
    cells = next(csv.reader([line], skipinitialspace=True), [])
    if len(cells) != len(columns):
        raise ValueError(f"{len(cells)} cells; expected {len(columns)} as in the header")
    row = {column.name: cell.strip() for column, cell in zip(columns, cells, strict=True)}
    measured: list[tuple[str, float, dict[str, str]]] = []
    for column in columns:
        if column.name in NOT_MEASURED or column.name in IDS or column.name in NAMES:
            continue
        if column.name.startswith(REASON_PREFIXES):
            measured += _throttle(column.name.partition(".")[2], row[column.name])
        elif (value := number(row[column.name], column.unit)) is not None:
            measured.append((public_name(column.name), value, {}))
    return row, measured


def read(stream: BinaryIO, origin: Origin, log: ReadLog, _options: ReadOptions) -> Iterator[Record]:
    """Some samples a row: one for each measured cell; a row is a line under the header."""
    columns: tuple[Column, ...] = ()
    sweeps = Sweeps(origin, log)
    for here, line in lines(stream, origin, log):
        header = parse_header(line)
        if header is not None:
            columns = header
            log.skip()
            _say_lacking(columns, log)
            continue
        if line.startswith(FAILED):
            log.reject("nvidia-smi failed", here, line)
            continue
        try:
            row, measured = parse_row(columns, line)
        except (ValueError, csv.Error) as error:
            log.reject("not a row", here, str(error))
            continue
        labels = _labels(row)
        time_ns = find_time(row["timestamp"], here, log) if "timestamp" in row else sweeps.time_ns(labels["hw.id"])
        if time_ns is None:
            log.reject("no time", here, f"{row['timestamp']!r}; expected YYYY/MM/DD HH:MM:SS.mmm")
            continue
        log.keep()
        for name, value, more in measured:
            yield Sample(time_ns, name, value, {**labels, **more})


def _labels(row: dict[str, str]) -> dict[str, str]:
    device = next((row[name] for name in IDS if name in row), "0")
    name = next((row[name] for name in NAMES if name in row), None)
    return {"hw.id": device} if name is None else {"hw.id": device, "hw.name": name}


def _throttle(reason: str, cell: str) -> list[tuple[str, float, dict[str, str]]]:
    if reason in NOT_REASONS or cell in ("[N/A]", "[Not Supported]", "N/A"):
        return []
    if reason == "active":
        try:
            active = list(active_reasons(int(cell, 16)))
        except ValueError:
            raise ValueError(f"{cell!r}; expected a hexadecimal mask of reasons") from None
        return [(THROTTLED, 1.0, {"reason": name}) for name in active] or [(THROTTLED, 0.0, {})]
    if cell not in ("Active", "Not Active"):
        raise ValueError(f"{cell!r}; expected Active or Not Active")
    return [(THROTTLED, float(cell == "Active"), {"reason": reason})]


def _say_lacking(columns: Sequence[Column], log: ReadLog) -> None:
    names = {column.name.replace("throttle", "event") for column in columns}
    for name, (signal, how) in LACKING.items():
        if name not in names:
            log.lacks(signal, how)
    log.lacks("pcie throughput", "nvidia-smi dmon -s t -o DT")


READER = Reader(
    id="nvidia-smi-csv",
    versions=("nvidia-smi 470 to 580",),
    signals=("device memory", "device use", "power", "clocks", "throttle reasons", "pcie link"),
    sniff=sniff,
    read=read,
)
