"""Devices: memory, bandwidth and arithmetic of accelerators and CPUs, from a shipped table with sources."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

from ragclinic.errors import BadInput
from ragclinic.physics.nearest import nearest

PCIE_LANE_BYTES_S = {3: 0.985e9, 4: 1.969e9, 5: 3.938e9, 6: 7.563e9}
"""Bytes a second of one lane in one direction after line coding (PCI-SIG, base specifications 3.0 to 6.0)."""


@dataclass(frozen=True, slots=True)
class Device:
    """One device. `flops` are dense operations a second of the matrix units by type, `vector_flops` those of the
    ordinary 32-bit units, `link_bytes_s` what it sends to a peer in one direction (None: only over PCIe)."""

    name: str
    kind: Literal["gpu", "tpu", "cpu"]
    memory_bytes: int
    bandwidth_bytes_s: float
    flops: Mapping[str, float]
    vector_flops: float
    pcie_generation: int | None
    pcie_lanes: int
    link_bytes_s: float | None
    source: str

    @property
    def pcie_bytes_s(self) -> float | None:
        """What PCIe carries in one direction, or None where the device is the host."""
        if self.pcie_generation is None:
            return None
        return PCIE_LANE_BYTES_S[self.pcie_generation] * self.pcie_lanes

    def compute_flops(self, kind: str) -> float:
        """Operations a second for products in this type; a type the device has no units for runs in 16 bits."""
        return self.flops.get(kind) or self.flops["fp16"]


@cache
def known_devices() -> dict[str, Device]:
    """The shipped table by name."""
    import tomllib  # with resources half of the room's import time, and only a name needs the table
    from importlib import resources

    text = resources.files("ragclinic.physics").joinpath("hardware.toml").read_text("utf-8")
    return {name: _device(name, row) for name, row in tomllib.loads(text).items()}


def named_device(name: str) -> Device:
    """The device of this name; `h100` is the first whose name begins so.

    Raises:
        BadInput: the table has no such device; the message lists the nearest names.
    """
    table = known_devices()
    plain = name.lower().replace("_", "-").replace(" ", "-").removeprefix("nvidia-")
    found = table.get(plain) or next((d for n, d in table.items() if n.startswith(f"{plain}-")), None)
    if found is None:
        raise BadInput(
            f"device {name}: not in the table; the nearest are {', '.join(nearest(plain, table))}; "
            "give one of these"
        )
    return found


def _device(name: str, row: Mapping[str, object]) -> Device:
    def number(key: str) -> float | None:
        value = row.get(key)
        return float(value) if isinstance(value, int | float) else None

    kind = str(row.get("kind", "gpu"))
    rates = row.get("tflops")
    link = number("link_gb_s")
    generation = number("pcie")
    return Device(
        name=name,
        kind="cpu" if kind == "cpu" else "tpu" if kind == "tpu" else "gpu",
        memory_bytes=int((number("memory_mib") or 0) * 2**20),
        bandwidth_bytes_s=(number("bandwidth_gb_s") or 0) * 1e9,
        flops={k: v * 1e12 for k, v in rates.items()} if isinstance(rates, Mapping) else {},
        vector_flops=(number("vector_tflops") or 0) * 1e12,
        pcie_generation=int(generation) if generation else None,
        pcie_lanes=int(number("lanes") or 16),
        link_bytes_s=link * 1e9 if link else None,
        source=str(row["source"]),
    )
