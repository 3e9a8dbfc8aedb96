"""From metric samples to memory samples: the fullest device and the fullest KV cache at each moment."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from ragclinic.signals.meaning import Meaning, meaning
from ragclinic.signals.records import Sample
from ragclinic.signals.seen import MemorySample

MODEL_RSS = "process.memory.usage"
HOST_LIMIT = "system.memory.limit"
GPU_USED = "hw.gpu.memory.usage"
GPU_LIMIT = "hw.gpu.memory.limit"
KV_USED = "ragclinic.kv.used_tokens"
KV_TOTAL = "ragclinic.kv.total_tokens"

DEVICE_LABELS = ("hw.id", "UUID", "uuid", "gpu_uuid", "gpu", "GPU_I_ID")
"""Labels that tell one device (or one slice of it) from another; absent where there is only one."""
USED, LIMIT = "device_memory_used_bytes", "device_memory_limit_bytes"
REST = ("device_memory_free_bytes", "device_memory_reserved_bytes")
"""What makes the limit together with the used memory, where no limit is printed (DCGM)."""
KV_IDS = {"kv_usage_share", "kv_used_tokens", "kv_total_tokens"}

_Device = tuple[str, ...]


class _Moment:
    def __init__(self) -> None:
        self.devices: dict[_Device, dict[str, float]] = defaultdict(dict)
        self.kv: dict[str, float] = {}
        self.process: dict[str, float] = {}

    def add(self, sample: Sample, found: Meaning | None) -> None:
        if found is None:
            _raise_to(self.process, sample.name, sample.value)
        elif found.state.id in KV_IDS:
            _raise_to(self.kv, found.state.id, sample.value * found.alias.scale)
        else:
            device = tuple(sample.labels.get(label, "") for label in DEVICE_LABELS)
            _raise_to(self.devices[device], found.state.id, sample.value * found.alias.scale)


def memory_samples(samples: Iterable[Sample]) -> tuple[MemorySample, ...]:
    """One memory sample for each moment at which any memory metric was seen, in order of time.

    Several devices or engines at one moment: the fullest counts, since a mean hides it.
    """
    moments: dict[int, _Moment] = defaultdict(_Moment)
    for sample in samples:
        found = meaning(sample.name, sample.labels)
        wanted = found is not None and (found.state.id in KV_IDS or found.state.id in {USED, LIMIT, *REST})
        if wanted or sample.name in {MODEL_RSS, HOST_LIMIT}:
            moments[sample.time_ns].add(sample, found)
    return tuple(_memory(time_ns, moment) for time_ns, moment in sorted(moments.items()))


def _memory(time_ns: int, moment: _Moment) -> MemorySample:
    devices = [_device(states) for states in moment.devices.values()]
    process = (moment.process.get(MODEL_RSS), moment.process.get(HOST_LIMIT))
    used, total = max(devices, key=_fullness) if devices else process
    counted = (moment.kv.get("kv_used_tokens"), moment.kv.get("kv_total_tokens"))
    share = moment.kv.get("kv_usage_share")
    kv_used, kv_total = max(counted, (share, None if share is None else 1.0), key=_fullness)
    return MemorySample(time_ns, used, total, kv_used, kv_total)


def _device(states: Mapping[str, float]) -> tuple[float | None, float | None]:
    used, limit = states.get(USED), states.get(LIMIT)
    if limit is None and used is not None and REST[0] in states:
        limit = used + sum(states.get(name, 0.0) for name in REST)
    return used, limit


def _fullness(pair: tuple[float | None, float | None]) -> tuple[bool, float]:
    used, total = pair
    return used is not None and bool(total), (used / total if total else used) if used is not None else -1.0


def _raise_to(values: dict[str, float], name: str, value: float) -> None:
    values[name] = max(value, values.get(name, value))
