"""What a metric means: looks its name and labels up in the vocabulary, however an exporter respelt it."""

from collections.abc import Mapping
from typing import NamedTuple

from ragclinic.signals.vocabulary import STATES, Alias, State


class Meaning(NamedTuple):
    """What a sample means: the state, its alias, and which generation that is (0 is the newest)."""

    state: State
    alias: Alias
    generation: int


_BY_ID: Mapping[str, State] = {state.id: state for state in STATES}
_BY_NAME: dict[str, list[Meaning]] = {}
for _state in STATES:
    for _generation, _alias in enumerate(_state.aliases):
        _BY_NAME.setdefault(_alias.name, []).append(Meaning(_state, _alias, _generation))

# The same metric through Ray's or OpenTelemetry's exporters, whose names may hold neither colon nor dot.
_RESPELLED: Mapping[str, str] = {
    **{name.replace(":", "_", 1): name for name in _BY_NAME if ":" in name},
    **{"ray_" + name.replace(":", "_", 1): name for name in _BY_NAME if ":" in name},
    **{name.replace(".", "_"): name for name in _BY_NAME if "." in name},
    **{name.replace(".", "_") + "_seconds": name for name in _BY_NAME if name.startswith("gen_ai.")},
    "hw_gpu_memory_usage_bytes": "hw.gpu.memory.usage",
    "hw_gpu_memory_limit_bytes": "hw.gpu.memory.limit",
    "hw_gpu_memory_free_bytes": "hw.gpu.memory.free",
    "hw_gpu_utilization_ratio": "hw.gpu.utilization",
}


def state(id_: str) -> State:
    """The state of that id.

    Raises:
        KeyError: no such state; the message lists the known ones.
    """
    if id_ not in _BY_ID:
        raise KeyError(f"{id_}: no such state; expected one of {', '.join(_BY_ID)}")
    return _BY_ID[id_]


def canonical(name: str) -> str:
    """The name as its server prints it: respelt names and counters without `_total` are led back to it."""
    name = _RESPELLED.get(name, name)
    return name if name in _BY_NAME or f"{name}_total" not in _BY_NAME else f"{name}_total"


def meaning(name: str, labels: Mapping[str, str]) -> Meaning | None:
    """What a sample of that name and those labels means, or None where the vocabulary has no word for it.

    The samples of a histogram are asked for by the family's name, without `_bucket`, `_sum` or `_count`.
    """
    for found in _BY_NAME.get(canonical(name), ()):
        if all(labels.get(key, "") == value for key, value in found.alias.where):
            return found
    return None
