"""The cheapest changes of a setting that keep its objective: first what costs nothing, then what costs quality,
then what costs devices."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ragclinic.physics.plan.predict import even_load, under_load
from ragclinic.physics.plan.setting import Setting
from ragclinic.physics.precision import kv_type, weight_type
from ragclinic.physics.roofline import prefill_ms

TRIAL_REQUESTS = 120
MOST_DEVICES = 16


@dataclass(frozen=True, slots=True)
class Change:
    """A change by its command-line options, and what it comes to."""

    options: str
    devices: int
    ttft_p95_ms: float


def cheapest_changes(setting: Setting, most: int = 3) -> tuple[Change, ...]:
    """Up to `most` changes that keep the objective under the setting's own load, the cheapest first."""
    found: list[Change] = []
    for options, changed in _candidates(setting):
        p95 = _p95(changed)
        if p95 is not None and p95 <= setting.slo_ms:
            found.append(Change(options, changed.devices, p95))
            if len(found) == most:
                break
    return tuple(found)


def _p95(setting: Setting) -> float | None:
    """The P95 of the first token under the setting's load, or None where it does not fit or cannot keep up."""
    server = setting.server() if setting.budget().fits else None
    if server is None:
        return None
    prompt_ms = prefill_ms(server.cost, setting.prompt_tokens, chunk_tokens=server.profile.step_tokens)
    if prompt_ms > setting.slo_ms or setting.rate_per_s / setting.replicas * prompt_ms > 1000:
        return None  # no need to simulate what cannot keep up
    load = even_load(setting, TRIAL_REQUESTS)
    return under_load(setting, server, load.at(load.rate_per_s)).ttft_ms.p95


def _candidates(setting: Setting) -> Iterator[tuple[str, Setting]]:
    """Single changes in order of cost, then lighter types together with more devices."""
    memory = setting.budget()
    if 0 < memory.sequences < setting.profile.sequences:  # admit no more than fit whole: nothing is preempted
        fewer = replace(setting.profile, sequences=memory.sequences)
        yield f"--sequences {memory.sequences}", replace(setting, profile=fewer)
    lighter = tuple(_lighter(setting))
    yield from lighter
    for share in (0.75, 0.5, 0.25):
        yield f"--compression {share:g}", replace(setting, compression=setting.compression * share)
    half = setting.context_tokens // 2
    if half > 2 * setting.output_tokens:
        yield f"--context {half}", replace(setting, context_tokens=half)
    for factor in (2, 4, 8):
        if setting.devices * factor > MOST_DEVICES:
            return
        for options, changed in (("", setting), *lighter):
            lead = f"{options} " if options else ""
            tensor, replicas = setting.tensor * factor, setting.replicas * factor
            yield f"{lead}--tp {tensor}", replace(changed, tensor=tensor)
            yield f"{lead}--replicas {replicas}", replace(changed, replicas=replicas)


def _lighter(setting: Setting) -> Iterator[tuple[str, Setting]]:
    """The setting with a smaller type for the cache, for the weights, and for both."""
    gpu = setting.device.kind != "cpu"
    kv_name = "fp8" if gpu else "q8_0"
    kv = kv_type(kv_name)
    smaller_kv = setting.kv.element_bytes > kv.element_bytes
    if smaller_kv:
        yield f"--kv-type {kv_name}", replace(setting, kv=kv)
    for name in ("fp8", "awq") if gpu else ("q8_0", "q4_k_m"):
        weights = weight_type(name)
        if weights.linear_bits < setting.weights.linear_bits:
            changed = replace(setting, weights=weights, stored=False)
            yield f"--weights {name}", changed
            if smaller_kv:
                yield f"--weights {name} --kv-type {kv_name}", replace(changed, kv=kv)
