"""From metric samples to memory samples: which public names tell the device's memory and which the KV cache's."""

from collections import defaultdict
from collections.abc import Iterable

from ragclinic.signals.records import Sample
from ragclinic.signals.seen import MemorySample

MODEL_RSS = "process.memory.usage"
HOST_LIMIT = "system.memory.limit"
GPU_USED = "hw.gpu.memory.usage"
GPU_LIMIT = "hw.gpu.memory.limit"
KV_USED = "ragclinic.kv.used_tokens"
KV_TOTAL = "ragclinic.kv.total_tokens"
# A share 0..1 of the cache: engines that tell no token counts (newest name first).
KV_SHARE = ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "sglang:token_usage", "sglang_token_usage")


def memory_samples(samples: Iterable[Sample]) -> tuple[MemorySample, ...]:
    """One memory sample for each moment at which any memory metric was seen, in order of time.

    Several devices or engines at one moment: the fullest counts, since a mean hides it.
    """
    moments: dict[int, dict[str, float]] = defaultdict(dict)
    known = {MODEL_RSS, HOST_LIMIT, GPU_USED, GPU_LIMIT, KV_USED, KV_TOTAL, *KV_SHARE}
    for sample in samples:
        if sample.name in known:
            values = moments[sample.time_ns]
            values[sample.name] = max(sample.value, values.get(sample.name, 0.0))
    return tuple(_moment(time_ns, values) for time_ns, values in sorted(moments.items()))


def _moment(time_ns: int, values: dict[str, float]) -> MemorySample:
    gpu = GPU_USED in values
    share = next((values[name] for name in KV_SHARE if name in values), None)
    return MemorySample(
        time_ns=time_ns,
        used_bytes=values.get(GPU_USED if gpu else MODEL_RSS),
        total_bytes=values.get(GPU_LIMIT if gpu else HOST_LIMIT),
        kv_used_tokens=values.get(KV_USED, share),
        kv_total_tokens=values.get(KV_TOTAL, 1.0 if share is not None else None),
    )
