"""The time of one forward step of a serving engine, from what it must compute and what it must read.

Roofline model (Williams, Waterman and Patterson, 2009), with the two roofs *added* for the matrix products, not
the larger taken: near the knee kernels overlap loads and arithmetic little, and the sum reproduces the measured
batch sweep of `dequantise`. Matrix products cost 2 operations a parameter and token (Kaplan et al., arXiv
2001.08361, section 2.1); attention costs operations for each pair of a query and a token it sees, so prefill grows
with the square of the prompt; decode reads the whole cache once a step.
"""

from dataclasses import dataclass
from typing import NamedTuple

from ragclinic.physics.hardware import Device
from ragclinic.physics.memory import layer_token_bytes, shard, state_bytes
from ragclinic.physics.models import Layer, Model, touched_share
from ragclinic.physics.precision import KvType, WeightType
from ragclinic.physics.roofline.dequantise import MARLIN, Kernel, packed_ms, unpack_ms
from ragclinic.physics.roofline.launch import launched_ms
from ragclinic.physics.roofline.rates import Rates, assumed_rates
from ragclinic.physics.roofline.transfer import all_reduce_ms, peer_ms

MS = 1000.0


class Step(NamedTuple):
    """What one step does. `tokens` are all rows computed, `rows` those that get logits.

    Prefill: `prefill_pairs` is the sum over its tokens of the tokens each sees, `prefill_context` the sum over its
    sequences of the tokens read. Decode: `decodes` sequences, `decode_context` the sum of their lengths. `_window`
    says the same for the layers that look back over a window only.
    """

    tokens: int
    rows: int
    prefill_pairs: float = 0.0
    prefill_pairs_window: float = 0.0
    prefill_context: float = 0.0
    prefill_context_window: float = 0.0
    decodes: int = 0
    decode_context: float = 0.0
    decode_context_window: float = 0.0


class AttentionMs(NamedTuple):
    """Milliseconds of attention for one pair or one token read, over all layers of a kind (full or sliding)."""

    prefill_pair: float = 0.0
    decode_token: float = 0.0
    read_token: float = 0.0


@dataclass(frozen=True, slots=True)
class StepCost:
    """The coefficients of one engine on its devices; `step_ms` is the sum of its parts.

    `full` and `window` are the two kinds of attention layers; `window_tokens` how far the latter look back (the
    longest, if several). `token_ms` and `row_ms` are matrix products for a token and for a row of logits.
    """

    layers: int
    pipeline: int
    token_ms: float
    row_ms: float
    read_ms: float
    expert_read_ms: float
    experts: int
    experts_used: int
    unpack: tuple[Kernel, float, float] | None
    full: AttentionMs
    window: AttentionMs
    window_tokens: int | None
    state_ms: float
    communication_ms: float
    communication_token_ms: float
    rates: Rates
    graph: bool

    def linear_ms(self, tokens: int, rows: int) -> float:
        """The matrix products of a step: reading weights and multiplying, with unpacking where they are packed."""
        read = self.read_ms + self.expert_read_ms * touched_share(tokens, self.experts, self.experts_used)
        product = self.token_ms * tokens + self.row_ms * rows
        if self.unpack is None:
            return read + product
        kernel, weights, flops = self.unpack
        return packed_ms(read, unpack_ms(kernel, weights, tokens, flops), product)

    def base_ms(self, tokens: int, rows: int, decodes: int) -> float:
        """All of a step but attention over contexts, before launching: what does not change with their length."""
        communication = self.communication_ms + self.communication_token_ms * tokens
        return self.linear_ms(tokens, rows) + self.state_ms * decodes + communication

    def attention_ms(self, step: Step) -> float:
        """Attention of a step: prefill is bound by pairs or by reading, decode reads each context once."""
        prefill = max(
            step.prefill_pairs * self.full.prefill_pair + step.prefill_pairs_window * self.window.prefill_pair,
            step.prefill_context * self.full.read_token + step.prefill_context_window * self.window.read_token,
        )
        return (
            prefill
            + step.decode_context * self.full.decode_token
            + step.decode_context_window * self.window.decode_token
        )

    def step_ms(self, step: Step) -> float:
        """One step in milliseconds, the host's own work included."""
        work = self.base_ms(step.tokens, step.rows, step.decodes) + self.attention_ms(step)
        # Decode steps are replayed from graphs; a step with prefill in it has no captured shape.
        graph = self.graph and step.tokens == step.decodes
        return self.pipeline * launched_ms(work, self.layers, self.rates, graph) + self.rates.host_ms


def step_cost(
    model: Model,
    device: Device,
    kv: KvType,
    weights: WeightType,
    *,
    tensor: int = 1,
    pipeline: int = 1,
    rates: Rates | None = None,
    kernel: Kernel = MARLIN,
    graph: bool = True,
) -> StepCost:
    """The coefficients for a model on `tensor` x `pipeline` devices of this kind.

    A pipeline's stages work one after the other on a step; that they may work on several steps at once is not
    counted, so its throughput is a lower estimate.
    """
    share = shard(model, tensor, pipeline)
    rates = rates or assumed_rates(device)
    bandwidth = device.bandwidth_bytes_s * rates.bandwidth_share
    compute = device.compute_flops(weights.compute) * rates.matrix_share
    count = share.parameters
    linear_bytes = weights.linear_bits / 8
    head = share.parameters.head or count.embedding
    active = share.active_linear
    unpacked = weights.packed and device.kind != "cpu"
    windows = [layer.window_tokens for layer in share.layers if layer.window_tokens is not None]
    token_bytes = model.hidden * 2.0
    link = 2 * len(share.layers)
    latency = all_reduce_ms(device, tensor, 0.0) * link
    hop = peer_ms(device, token_bytes) / pipeline if pipeline > 1 else 0.0
    return StepCost(
        layers=len(share.layers),
        pipeline=pipeline,
        token_ms=2 * active / compute * MS,
        row_ms=2 * head / (device.compute_flops("fp16") * rates.matrix_share) * MS,
        read_ms=((count.linear - count.expert) * linear_bytes + head * weights.table_bits / 8) / bandwidth * MS,
        expert_read_ms=count.expert * linear_bytes / bandwidth * MS,
        experts=share.experts,
        experts_used=share.experts_used,
        unpack=(kernel, active, device.vector_flops) if unpacked else None,
        full=_attention(share, kv, device, rates, bandwidth, sliding=False),
        window=_attention(share, kv, device, rates, bandwidth, sliding=True),
        window_tokens=max(windows) if windows else None,
        state_ms=2 * state_bytes(share) / bandwidth * MS,
        communication_ms=latency + hop,
        communication_token_ms=all_reduce_ms(device, tensor, token_bytes) * link - latency,
        rates=rates,
        graph=graph and device.kind == "gpu",
    )


def _attention(
    share: Model, kv: KvType, device: Device, rates: Rates, bandwidth: float, *, sliding: bool
) -> AttentionMs:
    layers: list[Layer] = [x for x in share.layers if x.kind != "linear" and (x.kind == "sliding") == sliding]
    compute = device.flops["fp16"] * rates.attention_share
    read = sum(layer_token_bytes(layer, kv) for layer in layers) / bandwidth * MS
    return AttentionMs(
        prefill_pair=sum(layer.prefill_pair_flops for layer in layers) / compute * MS,
        decode_token=max(read, sum(layer.decode_pair_flops for layer in layers) / compute * MS),
        read_token=read,
    )
