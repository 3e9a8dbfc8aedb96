"""Whether it fits: a device's memory divided among weights, working memory and cache."""

from dataclasses import dataclass

from ragclinic.physics.memory.kv import sequence_bytes, token_bytes
from ragclinic.physics.memory.weights import weights_bytes
from ragclinic.physics.memory.working import RUNTIME_BYTES, activation_bytes, graph_bytes
from ragclinic.physics.models import Model
from ragclinic.physics.precision import KvType, WeightType

USABLE_SHARE = 0.9
"""The share of a device that servers claim (`gpu_memory_utilization` of vLLM)."""


@dataclass(frozen=True, slots=True)
class Demand:
    """What is asked of the memory of one device: `sequences` of `context_tokens` at once.

    `step_tokens` and `step_sequences` bound one step; an `accelerator` needs a runtime and graphs too.
    """

    context_tokens: int
    sequences: int
    kv: KvType
    weights: WeightType | None
    block_tokens: int = 16
    step_tokens: int = 2048
    step_sequences: int = 256
    accelerator: bool = True


@dataclass(frozen=True, slots=True)
class Budget:
    """The memory of one device in bytes; `free_bytes` is negative by what is missing."""

    usable_bytes: int
    weights_bytes: int
    activations_bytes: int
    kv_bytes: int
    kv_bytes_per_token: int
    sequence_bytes: int

    @property
    def cache_bytes(self) -> int:
        """What is left for the cache once weights and working memory are in; not below zero."""
        return max(0, self.usable_bytes - self.weights_bytes - self.activations_bytes)

    @property
    def free_bytes(self) -> int:
        """What is left when all that is asked for is in."""
        return self.usable_bytes - self.weights_bytes - self.activations_bytes - self.kv_bytes

    @property
    def fits(self) -> bool:
        """Whether all of it fits."""
        return self.free_bytes >= 0

    @property
    def sequences(self) -> int:
        """How many sequences of the asked length fit at once."""
        return self.cache_bytes // self.sequence_bytes if self.sequence_bytes else 0


def budget(share: Model, demand: Demand, memory_bytes: int, usable_share: float = USABLE_SHARE) -> Budget:
    """The budget of one device that holds `share` (see `shard`) of a model."""
    working = activation_bytes(share, demand.step_tokens, demand.step_sequences)
    if demand.accelerator:
        working += RUNTIME_BYTES + graph_bytes(share)
    one = sequence_bytes(share, demand.context_tokens, demand.kv, demand.block_tokens)
    return Budget(
        usable_bytes=int(memory_bytes * usable_share),
        weights_bytes=weights_bytes(share, demand.weights),
        activations_bytes=working,
        kv_bytes=demand.sequences * one,
        kv_bytes_per_token=token_bytes(share, demand.kv),
        sequence_bytes=one,
    )
