"""What nvidia-smi's columns are called here, and how its units become base units.

Column names as public captures of drivers 470 to 580 show them. What OpenTelemetry has a name for gets that
name (`hw.gpu.*`), everything else keeps its column's name behind `nvidia_smi.`. Memory is in bytes, shares are
0..1, clocks in Hz, rates in bytes per second.
"""

from collections.abc import Iterator, Mapping

from ragclinic.signals.readers.finite import finite

MIB = 1024.0 * 1024.0
UNITS: Mapping[str, float] = {
    "": 1.0,
    "%": 0.01,
    "MiB": MIB,
    "MB": MIB,  # dmon and pmon print MB and mean MiB
    "GiB": 1024 * MIB,
    "KiB": 1024.0,
    "KB/s": 1000.0,
    "MB/s": 1e6,
    "MHz": 1e6,
    "W": 1.0,
    "C": 1.0,
    "us": 1e-6,
    "ms": 1e-3,
}

# Newest spelling first where there are several.
NAMES: Mapping[str, str] = {
    "memory.used": "hw.gpu.memory.usage",
    "memory.total": "hw.gpu.memory.limit",
    "memory.free": "hw.gpu.memory.free",
    "utilization.gpu": "hw.gpu.utilization",
    "power.draw.instant": "hw.gpu.power.draw",
    "power.draw.average": "hw.gpu.power.draw",
    "power.draw": "hw.gpu.power.draw",
    "enforced.power.limit": "nvidia_smi.power.limit",
    "temperature.gpu": "hw.gpu.temperature",
    "clocks.current.sm": "nvidia_smi.clocks.sm",
    "clocks.max.sm": "nvidia_smi.clocks.max.sm",
    "pcie.link.gen.gpucurrent": "nvidia_smi.pcie.link.gen.current",
}
THROTTLED = "nvidia_smi.throttled"
UNLICENSED = "nvidia_smi.vgpu.unlicensed"

# NVML's nvmlClocksEventReason bits that slow work down; idle (0x1), applications' own clocks (0x2) and the display
# (0x100) are no throttling.
REASONS: Mapping[int, str] = {
    0x4: "sw_power_cap",
    0x8: "hw_slowdown",
    0x10: "sync_boost",
    0x20: "sw_thermal_slowdown",
    0x40: "hw_thermal_slowdown",
    0x80: "hw_power_brake_slowdown",
}
NOT_REASONS = ("gpu_idle", "applications_clocks_setting", "display_clock_setting", "supported")
ABSENT = (
    "N/A",
    "[N/A]",
    "[Not Supported]",
    "Not Supported",
    "[Unknown Error]",
    "[Insufficient Permissions]",
    "-",
    "",
)
"""What stands where a device has no such value: unknown, not zero and not an error."""


def public_name(column: str) -> str:
    """The name under which a column is recorded."""
    return NAMES.get(column, f"nvidia_smi.{column}")


def number(text: str, unit: str = "") -> float | None:
    """A printed value in base units; a unit behind the value wins over the one of its column. None where absent.

    Raises:
        ValueError: neither a number nor one of the words for an absent value.
    """
    text = text.strip()
    if text in ABSENT or text.startswith("[GPU requires reset"):
        return None
    digits, _, own = text.partition(" ")
    scale = UNITS.get(own.strip() or unit)
    if scale is None:
        raise ValueError(f"{text!r} in {own or unit!r}; expected a unit of {', '.join(filter(None, UNITS))}")
    return finite(digits, scale)


def active_reasons(mask: int) -> Iterator[str]:
    """The reasons for lower clocks in NVML's bit mask."""
    return (name for bit, name in REASONS.items() if mask & bit)
