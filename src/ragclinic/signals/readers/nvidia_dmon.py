"""`nvidia-smi dmon` and `nvidia-smi pmon`: a table of a line a second for each device or process.

As public captures of drivers 470 to 580 show it. Two comment lines name the columns and their units, and come
again every few rows; `-o DT` (or `-o T`) adds date and time. Without them a row has no time: rows are taken to
be a second apart, the default. `sm` and `mem` are percent of time, `rxpci` and `txpci` MB/s, `fb` MiB. `-` is
unknown.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import BinaryIO

from ragclinic.signals.readers.clock import SECOND_NS, Sweeps, find_time
from ragclinic.signals.readers.lines import lines
from ragclinic.signals.readers.nvidia_names import number
from ragclinic.signals.readers.reader import Origin, Reader, ReadLog, ReadOptions
from ragclinic.signals.records import Record, Sample

HEADER = re.compile(r"#\s*(?:Date\s+)?(?:Time\s+)?gpu\s", re.IGNORECASE)
UNITS = re.compile(r"#\s*(?:YYYYMMDD\s+)?(?:HH:MM:SS\s+)?Idx\s", re.IGNORECASE)
BEGINNING = re.compile(
    rb"^#\s*(?:Date\s+)?(?:Time\s+)?gpu\s+(?:pid|pwr|sm|mclk|rxpci|fb|gtemp|temp|pviol|sbecc)\b", re.I | re.M
)

# Of a device (dmon) and of a process (pmon); columns that are not named here keep their name behind nvidia_smi.
DEVICE: Mapping[str, str] = {
    "pwr": "hw.gpu.power.draw",
    "gtemp": "hw.gpu.temperature",
    "temp": "hw.gpu.temperature",
    "sm": "hw.gpu.utilization",
    "mem": "nvidia_smi.utilization.memory",
    "pclk": "nvidia_smi.clocks.sm",
    "fb": "hw.gpu.memory.usage",
    "rxpci": "nvidia_smi.pcie.rx",
    "txpci": "nvidia_smi.pcie.tx",
}
IDENTITY = ("gpu", "pid", "type", "command", "date", "time")


def sniff(head: bytes) -> float:
    """Sure of the comment line that names the columns."""
    return 0.95 if BEGINNING.search(head[:8192]) else 0.0


def parse_row(
    columns: Sequence[str], units: Sequence[str], line: str
) -> tuple[dict[str, str], list[tuple[str, float]]]:
    """The cells by column, and name and value of what was measured, in base units.

    Raises:
        ValueError: fewer cells than columns, or a cell that is no value.
    """
    cells = line.split(None, len(columns) - 1)
    if len(cells) < len(columns):
        raise ValueError(f"{len(cells)} cells; expected {len(columns)}: {' '.join(columns)}")
    row = dict(zip(columns, (cell.strip() for cell in cells), strict=True))
    measured: list[tuple[str, float]] = []
    for column, unit in zip(columns, units, strict=True):
        if column in IDENTITY:
            continue
        value = number(row[column], unit)
        if value is not None:
            measured.append((_name(column, "pid" in row), value))
    return row, measured


def read(stream: BinaryIO, origin: Origin, log: ReadLog, _options: ReadOptions) -> Iterator[Record]:
    """Some samples a row: one for each measured cell; a row is a device or a process at one moment."""
    columns: list[str] = []
    units: list[str] = []
    sweeps = Sweeps(origin, log, SECOND_NS)
    for here, line in lines(stream, origin, log):
        if line.lstrip().startswith("#"):
            log.skip()
            if HEADER.match(line):
                columns = line.lstrip("# ").lower().split()
                units = [""] * len(columns)
                _say_lacking(columns, log)
            elif UNITS.match(line):
                units = _fitted(line.lstrip("# ").split(), columns)
            continue
        if not columns:
            log.reject("no header", here, "a row; expected the line '# gpu ...' before it")
            continue
        try:
            row, measured = parse_row(columns, units, line)
        except ValueError as error:
            log.reject("not a row", here, str(error))
            continue
        if row.get("pid") == "-":
            log.skip()
            continue
        labels = {"hw.id": row["gpu"]} | {key: row[key] for key in ("pid", "type", "command") if key in row}
        time_ns = _time_ns(row, here, log)
        if time_ns is None:
            time_ns = sweeps.time_ns((row["gpu"], row.get("pid")))
        log.keep()
        for name, value in measured:
            yield Sample(time_ns, name, value, labels)


def _name(column: str, of_process: bool) -> str:
    if of_process:
        return f"nvidia_smi.process.{column}"
    return DEVICE.get(column, f"nvidia_smi.{column}")


def _fitted(units: list[str], columns: Sequence[str]) -> list[str]:
    """As many units as columns; what is no unit (`Idx`, `name`, `C/G`) stands over cells that are no value."""
    known = [unit if unit in ("%", "W", "C", "MHz", "MB", "MB/s") else "" for unit in units]
    return (known + [""] * len(columns))[: len(columns)]


def _time_ns(row: Mapping[str, str], here: Origin, log: ReadLog) -> int | None:
    date, time = row.get("date"), row.get("time")
    if date is None or time is None or len(date) != 8:
        return None
    return find_time(f"{date[:4]}-{date[4:6]}-{date[6:]} {time}", here, log)


def _say_lacking(columns: Sequence[str], log: ReadLog) -> None:
    if "pid" not in columns:
        if "rxpci" not in columns:
            log.lacks("pcie throughput", "nvidia-smi dmon -s pucmt -o DT")
        if "fb" not in columns:
            log.lacks("device memory", "nvidia-smi dmon -s pucmt -o DT")
        log.lacks("pcie link", "nvidia-smi --query-gpu=pcie.link.gen.current,pcie.link.width.current --format=csv")
    if "date" not in columns:
        log.lacks("times", "nvidia-smi dmon -o DT")


READER = Reader(
    id="nvidia-smi-dmon",
    versions=("nvidia-smi dmon and pmon 470 to 580",),
    signals=("device memory", "device use", "power", "clocks", "pcie throughput", "memory by process"),
    sniff=sniff,
    read=read,
)
