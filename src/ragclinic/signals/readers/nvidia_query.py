"""`nvidia-smi -q` (also with `-d` or `-l`): one indented block of `Key : Value` lines for each device.

As public captures of drivers 470 to 580 show it. Generations: `Clocks Event Reasons` was `Clocks Throttle
Reasons` up to driver 530, `GPU Power Readings` was `Power Readings` up to 525, and `Utilization` wrote `Gpu`. A
virtual GPU without a licence is slowed down by the driver some minutes after its start: that stands only here.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import BinaryIO

from ragclinic.signals.readers.clock import Sweeps
from ragclinic.signals.readers.lines import lines
from ragclinic.signals.readers.nvidia_names import THROTTLED, UNLICENSED, number
from ragclinic.signals.readers.reader import Origin, Reader, ReadLog, ReadOptions
from ragclinic.signals.records import Record, Sample

TITLE = b"NVSMI LOG"
DEVICE = re.compile(r"GPU (?P<id>[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d)")
PAIR = re.compile(r"(?P<key>[^:]+?)\s*: ?(?P<value>.*)")
PRINTED_TIME = "%a %b %d %H:%M:%S %Y"

# The end of a value's path -> its name; of several generations the newest first, all are looked for.
NAMES: Mapping[tuple[str, ...], str] = {
    ("FB Memory Usage", "Used"): "hw.gpu.memory.usage",
    ("FB Memory Usage", "Total"): "hw.gpu.memory.limit",
    ("FB Memory Usage", "Free"): "hw.gpu.memory.free",
    ("Utilization", "GPU"): "hw.gpu.utilization",
    ("Utilization", "Gpu"): "hw.gpu.utilization",
    ("Utilization", "Memory"): "nvidia_smi.utilization.memory",
    ("GPU Power Readings", "Instantaneous Power Draw"): "hw.gpu.power.draw",
    ("GPU Power Readings", "Power Draw"): "hw.gpu.power.draw",
    ("Power Readings", "Power Draw"): "hw.gpu.power.draw",
    ("GPU Power Readings", "Current Power Limit"): "nvidia_smi.power.limit",
    ("Power Readings", "Power Limit"): "nvidia_smi.power.limit",
    ("Temperature", "GPU Current Temp"): "hw.gpu.temperature",
    ("Clocks", "SM"): "nvidia_smi.clocks.sm",
    ("Max Clocks", "SM"): "nvidia_smi.clocks.max.sm",
    ("PCIe Generation", "Current"): "nvidia_smi.pcie.link.gen.current",
    ("PCIe Generation", "Max"): "nvidia_smi.pcie.link.gen.max",
    ("Link Width", "Current"): "nvidia_smi.pcie.link.width.current",
    ("Link Width", "Max"): "nvidia_smi.pcie.link.width.max",
    ("PCI", "Tx Throughput"): "nvidia_smi.pcie.tx",
    ("PCI", "Rx Throughput"): "nvidia_smi.pcie.rx",
}
REASON_SECTIONS = ("Clocks Event Reasons", "Clocks Throttle Reasons")
REASONS: Mapping[str, str] = {
    "SW Power Cap": "sw_power_cap",
    "HW Slowdown": "hw_slowdown",
    "HW Thermal Slowdown": "hw_thermal_slowdown",
    "HW Power Brake Slowdown": "hw_power_brake_slowdown",
    "Sync Boost": "sync_boost",
    "SW Thermal Slowdown": "sw_thermal_slowdown",
}
LICENCE_SECTIONS = ("vGPU Software Licensed Product", "GRID Licensed Product")

Measured = list[tuple[str, float, dict[str, str]]]


def sniff(head: bytes) -> float:
    """Sure of its title line."""
    return 0.95 if TITLE in head[:4096] else 0.0


def parse_value(path: tuple[str, ...], value: str) -> Measured:
    """Name, value and labels of one line, by its path of sections; empty where it is nothing we record.

    Raises:
        ValueError: a known line with an unreadable value.
    """
    key = path[-1]
    if any(section in path for section in REASON_SECTIONS):
        reason = REASONS.get(key)
        return [(THROTTLED, float(value == "Active"), {"reason": reason})] if reason and value != "N/A" else []
    if key == "License Status" and any(section in path for section in LICENCE_SECTIONS):
        return [(UNLICENSED, float(value.startswith("Unlicensed")), {})] if value not in ("N/A", "") else []
    name = NAMES.get(path[-2:])
    if name is None:
        return []
    found = number(value.removesuffix("x"))
    return [] if found is None else [(name, found, {})]


def read(stream: BinaryIO, origin: Origin, log: ReadLog, _options: ReadOptions) -> Iterator[Record]:
    """Some samples a device; a row is the block of one device at one moment."""
    printed_ns: int | None = None
    device: _Device | None = None
    sweeps = Sweeps(origin, log)
    for here, line in lines(stream, origin, log):
        title, pair = DEVICE.fullmatch(line.strip()), PAIR.fullmatch(line.strip())
        if title is not None:
            yield from _close(device, printed_ns, sweeps, log)
            device = _Device(title["id"])
        elif pair is not None and pair["key"] == "Timestamp" and not line.startswith(" "):
            yield from _close(device, printed_ns, sweeps, log)
            device, printed_ns = None, _time_ns(pair["value"], here, log)
        elif device is not None:
            try:
                device.add(len(line) - len(line.lstrip()), line.strip(), pair)
            except ValueError as error:
                log.reject("not a value", here, str(error))
    yield from _close(device, printed_ns, sweeps, log)


class _Device:
    """The block of one device while it is read: the sections that are open, and what was measured."""

    def __init__(self, id_: str) -> None:
        self.id = id_
        self.name: str | None = None
        self.measured: Measured = []
        self._sections: list[tuple[int, str]] = []

    def add(self, indent: int, text: str, pair: re.Match[str] | None) -> None:
        while self._sections and self._sections[-1][0] >= indent:
            self._sections.pop()
        key = text if pair is None else pair["key"]
        path = (*(section for _, section in self._sections), key)
        self._sections.append((indent, key))  # a line with a value may head others: HW Slowdown does
        if pair is None:
            return
        if path == ("Product Name",):
            self.name = pair["value"]
        self.measured += parse_value(path, pair["value"].strip())


def _close(device: _Device | None, printed_ns: int | None, sweeps: Sweeps, log: ReadLog) -> Iterator[Sample]:
    if device is None:
        return
    log.keep()
    names = {name for name, _, _ in device.measured}
    if THROTTLED not in names:
        log.lacks("throttle reasons", "nvidia-smi -q -d PERFORMANCE,CLOCK")
    if "hw.gpu.memory.usage" not in names:
        log.lacks("device memory", "nvidia-smi -q -d MEMORY")
    time_ns = sweeps.time_ns(device.id) if printed_ns is None else printed_ns
    labels = {"hw.id": device.id} if device.name is None else {"hw.id": device.id, "hw.name": device.name}
    for name, value, more in device.measured:
        yield Sample(time_ns, name, value, {**labels, **more})


def _time_ns(text: str, here: Origin, log: ReadLog) -> int | None:
    try:
        found = datetime.strptime(" ".join(text.split()), PRINTED_TIME).replace(tzinfo=UTC)
    except ValueError:
        log.reject("no time", here, f"{text!r}; expected 'Tue Dec  1 16:20:00 2026'")
        return None
    log.note("times without a time zone were read as UTC")
    return round(found.timestamp()) * 1_000_000_000


READER = Reader(
    id="nvidia-smi-q",
    versions=("nvidia-smi -q 470 to 580",),
    signals=(
        "device memory",
        "device use",
        "power",
        "clocks",
        "throttle reasons",
        "pcie throughput",
        "vgpu licence",
    ),
    sniff=sniff,
    read=read,
)
