"""Moving bytes: over PCIe between host and device, between peers, and in the all-reduce of tensor parallelism."""

from ragclinic.physics.hardware import Device

LINK_SHARE = 0.85
"""Of the line rate after packet headers: 26 to 27 GB/s of 31.5 are measured on PCIe 4 x16 (bandwidthTest)."""
PCIE_LATENCY_MS = 0.010
PEER_LATENCY_MS = 0.005
"""The start of one transfer or of one collective step; microbenchmarks say 5 to 15 us and 3 to 8 us."""


def host_ms(device: Device, size_bytes: float) -> float:
    """Milliseconds to copy between host and device over PCIe; 0 where they share memory."""
    if device.pcie_bytes_s is None:
        return 0.0
    return PCIE_LATENCY_MS + size_bytes / (device.pcie_bytes_s * LINK_SHARE) * 1000


def peer_ms(device: Device, size_bytes: float) -> float:
    """Milliseconds to copy to a device of the same kind, over the peer link or, without one, over PCIe."""
    latency, rate = _peer(device)
    return latency + size_bytes / rate * 1000


def all_reduce_ms(device: Device, devices: int, size_bytes: float) -> float:
    """Milliseconds of one ring all-reduce: 2 (n - 1) / n of the bytes through each link, a start for each half.

    Source: Patarasuk and Yuan, Bandwidth optimal all-reduce algorithms, 2009.
    """
    if devices < 2:
        return 0.0
    latency, rate = _peer(device)
    return 2 * latency + 2 * (devices - 1) / devices * size_bytes / rate * 1000


def _peer(device: Device) -> tuple[float, float]:
    if device.link_bytes_s is not None:
        return PEER_LATENCY_MS, device.link_bytes_s * LINK_SHARE
    if device.pcie_bytes_s is not None:
        return PCIE_LATENCY_MS, device.pcie_bytes_s * LINK_SHARE
    return PEER_LATENCY_MS, device.bandwidth_bytes_s / 2  # shared memory: read and written once
