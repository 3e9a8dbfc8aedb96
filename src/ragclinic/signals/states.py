"""From metric samples under public names to the states of the vocabulary, engines and devices together.

Three things deceive here, each met in the field: a server that prints two generations of one name (only the newest
counts), ranks of a tensor-parallel group that each report the same requests (one counts), and totals that stand
beside their own parts under the same name (SGLang's queue by priority, its cached tokens by source).
"""

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import NamedTuple

from ragclinic.signals.histogram import Histogram, over
from ragclinic.signals.meaning import canonical, meaning, state
from ragclinic.signals.records import Sample
from ragclinic.signals.vocabulary import Across

RANKS = ("tp_rank", "pp_rank", "moe_ep_rank")
"""Labels of SGLang whose values report the same requests again; `dp_rank` and vLLM's `engine` do not."""
TOTALS: Mapping[str, str] = {"priority": "", "cache_source": "total"}
"""Labels of SGLang one value of which is the total of the others: where it is there, the others are left out."""


class Point(NamedTuple):
    """A state at one moment."""

    time_ns: int
    value: float


_Labels = tuple[tuple[str, str], ...]


class _Series(NamedTuple):
    server: str
    labels: _Labels


class _Value(NamedTuple):
    generation: int
    value: float


def gauges(samples: Iterable[Sample], *ids: str) -> dict[str, tuple[Point, ...]]:
    """The course of each gauge state, in order of time; states that were not seen are left out.

    A state that is `max` across engines or devices is the fullest one's; a `sum` adds them.
    """
    moments: dict[str, dict[int, dict[_Series, _Value]]] = {}
    for sample in samples:
        found = meaning(sample.name, sample.labels)
        if found is None or found.state.id not in ids:
            continue
        seen = moments.setdefault(found.state.id, {}).setdefault(sample.time_ns, {})
        key = _Series(server(found.alias.name), _without(sample.labels, RANKS))
        value = _Value(found.generation, sample.value * found.alias.scale)
        old = seen.get(key)
        if old is None or value.generation < old.generation:
            seen[key] = value
        elif value.generation == old.generation:
            seen[key] = max(old, value)
    return {
        id_: tuple(Point(t, _combined(seen, state(id_).across)) for t, seen in sorted(by_time.items()))
        for id_, by_time in moments.items()
    }


def increase(samples: Iterable[Sample], id_: str) -> float | None:
    """How much a counter state grew between its first and its last sample, over all its series; None where unseen.

    A value that falls is a restart: what was counted since then is added.
    """
    series: dict[_Series, dict[int, list[Point]]] = {}
    for sample in samples:
        found = meaning(sample.name, sample.labels)
        if found is not None and found.state.id == id_:
            key = _Series(server(found.alias.name), _without(sample.labels, RANKS))
            point = Point(sample.time_ns, sample.value * found.alias.scale)
            series.setdefault(key, {}).setdefault(found.generation, []).append(point)
    if not series:
        return None
    return sum(_growth(series[key][min(series[key])]) for key in _wholes(series))


def latencies(samples: Iterable[Sample], id_: str) -> Histogram | None:
    """The values a histogram state gathered, in the state's unit; None where unseen."""
    kept = list(samples)
    names = {sample.name.removesuffix("_bucket") for sample in kept if sample.name.endswith("_bucket")}
    by_server: dict[str, tuple[int, str, float]] = {}
    for name in names:
        alias = next((a for a in state(id_).aliases if a.name == canonical(name)), None)
        if alias is not None:
            found = (state(id_).aliases.index(alias), name, alias.scale)
            by_server[server(alias.name)] = min(found, by_server.get(server(alias.name), found))
    together: Histogram | None = None
    for _, name, scale in by_server.values():
        part = over((s for s in kept if _meant(s, name, id_)), name, RANKS)
        if part is not None:
            scaled = Histogram(tuple(edge * scale for edge in part.edges), part.counts)
            together = scaled if together is None else together.plus(scaled)
    return together


def server(name: str) -> str:
    """Which program prints metrics of this name: the part before the first colon, dot or underscore."""
    return name.replace(".", ":").replace("_", ":").partition(":")[0]


def _meant(sample: Sample, family: str, id_: str) -> bool:
    if sample.name != f"{family}_bucket":
        return False
    found = meaning(family, sample.labels)
    return found is not None and found.state.id == id_


def _without(labels: Mapping[str, str], names: Iterable[str]) -> _Labels:
    return tuple(sorted((k, v) for k, v in labels.items() if k not in names))


def _wholes(series: Iterable[_Series]) -> list[_Series]:
    """The series without those that are parts of a total that is there as well."""
    found = list(series)
    totals = {
        (s.server, _without(dict(s.labels), [name]), name)
        for s in found
        for name, total in TOTALS.items()
        if dict(s.labels).get(name) == total
    }
    return [s for s in found if not any(_is_part(s, name, total, totals) for name, total in TOTALS.items())]


def _is_part(series: _Series, name: str, total: str, totals: set[tuple[str, _Labels, str]]) -> bool:
    value = dict(series.labels).get(name)
    rest = _without(dict(series.labels), [name])
    return value is not None and value != total and (series.server, rest, name) in totals


def _combined(seen: Mapping[_Series, _Value], across: Across) -> float:
    numbers = [seen[key].value for key in _wholes(seen)]
    return max(numbers) if across == "max" else sum(numbers)


def _growth(points: list[Point]) -> float:
    by_time: dict[int, float] = {}
    for point in points:  # ranks that report the same at one moment
        by_time[point.time_ns] = max(point.value, by_time.get(point.time_ns, point.value))
    ordered = [value for _, value in sorted(by_time.items())]
    return sum(later - earlier if later >= earlier else later for earlier, later in pairwise(ordered))
