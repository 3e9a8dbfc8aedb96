"""How much of a device's PCIe link is used: the busier direction over the limit of its generation and width.

The link carries both directions at once, each with the full rate, so they are never added up.
"""

from collections.abc import Iterable, Mapping

from ragclinic.signals.meaning import meaning
from ragclinic.signals.records import Sample
from ragclinic.signals.states import Point

# Bytes per second, lane and direction after line coding: 8b/10b up to generation 2, 128b/130b to 5, and 242 of the
# 256 bytes of a flit from 6 on (PCI Express Base Specification 6.0).
LANE_BYTES_PER_S: Mapping[int, float] = {
    1: 2.5e9 / 10,
    2: 5e9 / 10,
    3: 8e9 * 128 / 130 / 8,
    4: 16e9 * 128 / 130 / 8,
    5: 32e9 * 128 / 130 / 8,
    6: 64e9 * 242 / 256 / 8,
    7: 128e9 * 242 / 256 / 8,
}
RX, TX, GENERATION, WIDTH = "pcie_rx_bytes_per_s", "pcie_tx_bytes_per_s", "pcie_generation", "pcie_width"
DEVICE_LABELS = ("hw.id", "UUID", "gpu")


def limit_bytes_per_s(generation: int, width: int) -> float | None:
    """What one direction of the link can carry, or None for a generation that is not known."""
    lane = LANE_BYTES_PER_S.get(generation)
    return None if lane is None or width <= 0 else lane * width


def use(samples: Iterable[Sample], generation: int | None = None, width: int | None = None) -> tuple[Point, ...]:
    """The share 0..1 of the busiest device's link at each moment, in order of time.

    The link's generation and width are taken from the samples, the highest of each device (an idle link trains
    down); `generation` and `width` serve where no sample tells. Empty where throughput or link is unknown.
    """
    links: dict[tuple[str, ...], dict[str, int]] = {}
    moving: dict[int, dict[tuple[str, ...], float]] = {}
    for sample in samples:
        found = meaning(sample.name, sample.labels)
        if found is None or found.state.id not in (RX, TX, GENERATION, WIDTH):
            continue
        device = tuple(sample.labels.get(label, "") for label in DEVICE_LABELS)
        value = sample.value * found.alias.scale
        if found.state.id in (RX, TX):
            rates = moving.setdefault(sample.time_ns, {})
            rates[device] = max(value, rates.get(device, 0.0))
        else:
            link = links.setdefault(device, {})
            link[found.state.id] = max(int(value), link.get(found.state.id, 0))
    limits = {device: _limit(links, device, generation, width) for rates in moving.values() for device in rates}
    return tuple(
        Point(time_ns, max(shares))
        for time_ns, rates in sorted(moving.items())
        if (shares := [rate / limit for device, rate in rates.items() if (limit := limits[device])])
    )


def _limit(
    links: Mapping[tuple[str, ...], Mapping[str, int]],
    device: tuple[str, ...],
    generation: int | None,
    width: int | None,
) -> float | None:
    """The limit of a device; one whose link no sample tells under its own name has the only link that is known."""
    link = links.get(device) or (next(iter(links.values())) if len(links) == 1 else {})
    gen, lanes = link.get(GENERATION, generation), link.get(WIDTH, width)
    return None if gen is None or lanes is None else limit_bytes_per_s(gen, lanes)
