"""The joint heat map: memory pressure and context redundancy in one number, and the time spent in each zone.

    w = max(0.3, 1 - 0.7 * redundancy)        heat = w * memory_pct + (1 - w) * redundancy * 100

Numbers only; drawing is the report's.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from ragclinic.diagnosis.axes import RequestAxes

Zone = Literal["ideal", "coupled", "contended"]
SIZE = 64
MIN_MEMORY_WEIGHT = 0.3
REDUNDANCY_WEIGHT = 0.7
IDEAL_UP_TO = 30.0
"""Heat (0..100): 0-30 is ideal, 31-70 coupled, 71-100 contended."""
COUPLED_UP_TO = 70.0


class HeatPoint(NamedTuple):
    """One request on the plane: both axes 0..1, its heat 0..100 and zone, and the seconds it took."""

    request_id: str
    memory: float
    redundancy: float
    heat: float
    zone: Zone
    seconds: float


@dataclass(frozen=True, slots=True)
class HeatMap:
    """The plane of the formula, `plane[i][j]` at redundancy i / 63 and memory j / 63, and the requests on it.

    `seconds` sums the requests' time by zone. Requests with an unknown axis are not on the map.
    """

    plane: tuple[tuple[float, ...], ...]
    points: tuple[HeatPoint, ...]
    seconds: Mapping[Zone, float]

    def share(self, zone: Zone) -> float:
        """Share (0..1) of the requests' time spent in the zone; 0 where no request is on the map."""
        total = sum(self.seconds.values())
        return self.seconds[zone] / total if total else 0.0


def heat(memory: float, redundancy: float) -> float:
    """The heat (0..100) at a memory pressure and a redundancy, both 0..1.

    >>> heat(1.0, 0.0), heat(0.0, 0.0), round(heat(0.5, 0.5), 6)
    (100.0, 0.0, 50.0)
    """
    w = max(MIN_MEMORY_WEIGHT, 1 - REDUNDANCY_WEIGHT * redundancy)
    return w * memory * 100 + (1 - w) * redundancy * 100


def zone(value: float) -> Zone:
    """The zone of a heat.

    >>> zone(30), zone(30.1), zone(70), zone(70.1)
    ('ideal', 'coupled', 'coupled', 'contended')
    """
    if value <= IDEAL_UP_TO:
        return "ideal"
    return "coupled" if value <= COUPLED_UP_TO else "contended"


def plane(size: int = SIZE) -> tuple[tuple[float, ...], ...]:
    """The formula over the whole square."""
    steps = [i / (size - 1) for i in range(size)]
    return tuple(tuple(heat(memory, redundancy) for memory in steps) for redundancy in steps)


def heat_map(points: Sequence[RequestAxes]) -> HeatMap:
    """The plane with the requests whose axes are both known."""
    placed = [_point(p.request_id, p.memory_pressure, p.context_redundancy, p.seconds) for p in points]
    on_map = tuple(p for p in placed if p is not None)
    seconds: dict[Zone, float] = {"ideal": 0.0, "coupled": 0.0, "contended": 0.0}
    for point in on_map:
        seconds[point.zone] += point.seconds
    return HeatMap(plane(), on_map, seconds)


def _point(request_id: str, memory: float | None, redundancy: float | None, seconds: float) -> HeatPoint | None:
    if memory is None or redundancy is None:
        return None
    value = heat(memory, redundancy)
    return HeatPoint(request_id, memory, redundancy, value, zone(value), seconds)
