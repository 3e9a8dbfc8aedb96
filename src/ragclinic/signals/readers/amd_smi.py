"""`rocm-smi --json` and `amd-smi metric --json`: one document, or one after another, with all devices of a moment.

As public captures show them: rocm-smi of ROCm 5 and 6 (`card0` -> `{"VRAM Total Used Memory (B)":
"1073741824"}`, all values strings) and amd-smi of ROCm 6 (a list, in newer versions under `gpu_data`, of groups
of `{"value": 16, "unit": "GT/s"}`). Bandwidth sent and received are megabits per second there. Neither prints a
time: documents keep their order.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from ragclinic.signals.readers.clock import Sweeps
from ragclinic.signals.readers.elements import elements
from ragclinic.signals.readers.fields import number
from ragclinic.signals.readers.reader import Origin, Reader, ReadLog, ReadOptions
from ragclinic.signals.records import Record, Sample

MIB = 1024.0 * 1024.0
UNITS: Mapping[str, float] = {
    "": 1.0, "%": 0.01, "B": 1.0, "KB": 1024.0, "MB": MIB, "GB": 1024 * MIB, "MiB": MIB, "W": 1.0, "C": 1.0,
    "MHz": 1e6, "GT/s": 1.0, "Mb/s": 125_000.0,
}  # fmt: skip

# rocm-smi's keys, unit included, newest spelling first -> name and factor to base units.
ROCM: Mapping[str, tuple[str, float]] = {
    "VRAM Total Used Memory (B)": ("hw.gpu.memory.usage", 1.0),
    "VRAM Total Memory (B)": ("hw.gpu.memory.limit", 1.0),
    "GPU use (%)": ("hw.gpu.utilization", 0.01),
    "GPU Memory Read/Write Activity (%)": ("amd_smi.usage.umc_activity", 0.01),
    "GPU memory use (%)": ("amd_smi.usage.umc_activity", 0.01),
    "Current Socket Graphics Package Power (W)": ("hw.gpu.power.draw", 1.0),
    "Average Graphics Package Power (W)": ("hw.gpu.power.draw", 1.0),
    "Temperature (Sensor junction) (C)": ("hw.gpu.temperature", 1.0),
    "Temperature (Sensor edge) (C)": ("amd_smi.temperature.edge", 1.0),
}
NAME_KEYS = ("Card Series", "Card series", "Card Model", "Card model")

# amd-smi's paths; what is not here keeps its path behind amd_smi.
AMD: Mapping[str, str] = {
    "mem_usage.used_vram": "hw.gpu.memory.usage",
    "mem_usage.total_vram": "hw.gpu.memory.limit",
    "mem_usage.free_vram": "hw.gpu.memory.free",
    "usage.gfx_activity": "hw.gpu.utilization",
    "power.socket_power": "hw.gpu.power.draw",
    "temperature.hotspot": "hw.gpu.temperature",
    "clock.gfx_0.clk": "amd_smi.clocks.gfx",
    "clock.gfx_0.max_clk": "amd_smi.clocks.max.gfx",
}
GROUPS = ("usage.", "power.", "clock.gfx_0.", "temperature.", "pcie.", "mem_usage.")
MAX_DEPTH = 6


def sniff(head: bytes) -> float:
    """Sure of rocm-smi's cards and of amd-smi's groups."""
    start = head[:8192].lstrip()
    if not start.startswith((b"{", b"[")):
        return 0.0
    if b'"card' in start and (b"VRAM" in start or b"GPU use (%)" in start or b"Package Power (W)" in start):
        return 0.9
    return 0.9 if b'"gpu"' in start and (b'"gfx_activity"' in start or b'"mem_usage"' in start) else 0.0


def parse_device(device: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Name and value of each measurement of one device of amd-smi, in base units."""
    for path, value, unit in _leaves(device, "", 0):
        if not path.startswith(GROUPS) or unit not in UNITS:
            continue
        found = number(value)
        if found is not None and math.isfinite(found * UNITS[unit]):
            yield AMD.get(path, f"amd_smi.{path}"), found * UNITS[unit]


def parse_card(card: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Name and value of each measurement of one card of rocm-smi, in base units."""
    named: set[str] = set()
    for key, (name, factor) in ROCM.items():
        found = number(card.get(key))
        if found is not None and math.isfinite(found) and name not in named:
            named.add(name)
            yield name, found * factor


def read(stream: BinaryIO, origin: Origin, log: ReadLog, _options: ReadOptions) -> Iterator[Record]:
    """Some samples a device; a row is a device at one moment."""
    sweeps = Sweeps(origin, log)
    for _, document, line in elements(stream, origin, log, {""}):
        for id_, name, device, is_card in _devices(document):
            measured = list(parse_card(device) if is_card else parse_device(device))
            if not measured:
                log.reject("no measurement", origin.at(line), f"device {id_}; expected usage, memory or power")
                continue
            log.keep()
            time_ns = sweeps.time_ns(id_)
            labels = {"hw.id": id_, "hw.vendor": "AMD"} | ({"hw.name": name} if name else {})
            for metric, value in measured:
                yield Sample(time_ns, metric, value, labels)
    log.lacks("pcie throughput", "amd-smi metric --pcie --json (where the device measures it)")


def _devices(document: Any) -> Iterator[tuple[str, str | None, Mapping[str, Any], bool]]:
    """Id, name and measurements of each device of one document, and whether it is rocm-smi's."""
    if not isinstance(document, dict):
        return
    if "gpu" in document:
        yield str(document["gpu"]), None, document, False
    elif isinstance(document.get("gpu_data"), list):
        for device in document["gpu_data"]:
            yield from _devices(device)
    else:
        for key, card in document.items():
            if key.startswith("card") and isinstance(card, dict):
                name = next((card[k] for k in NAME_KEYS if isinstance(card.get(k), str)), None)
                yield key.removeprefix("card"), name, card, True


def _leaves(value: Any, path: str, depth: int) -> Iterator[tuple[str, Any, str]]:
    """Path, value and unit of each measurement; a value without a unit counts as it is."""
    if isinstance(value, dict) and depth < MAX_DEPTH:
        if "value" in value and "unit" in value:
            yield path, value["value"], str(value["unit"])
            return
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}" if path else key, depth + 1)
    elif isinstance(value, int | float | str) and not isinstance(value, bool):
        yield path, value, ""


READER = Reader(
    id="amd-smi-json",
    versions=("rocm-smi (ROCm 5, 6)", "amd-smi (ROCm 6)"),
    signals=("device memory", "device use", "power", "clocks"),
    sniff=sniff,
    read=read,
)
