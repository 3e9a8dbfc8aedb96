"""Counts a model's parameters from its shape; the sums equal the published counts (tests/physics)."""

from typing import NamedTuple

from ragclinic.physics.models.fields import Fields
from ragclinic.physics.models.layer import LayerKind
from ragclinic.physics.models.model import Parameters
from ragclinic.physics.models.state import StateShape
from ragclinic.physics.models.traits import Traits


class Shape(NamedTuple):
    """The widths that the count needs."""

    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    intermediate: int
    experts: int
    expert_intermediate: int


class Count(NamedTuple):
    """Parameters of one part: matrices, those of routed experts among them, and the rest."""

    linear: int = 0
    expert: int = 0
    other: int = 0

    def plus(self, more: "Count") -> "Count":
        """Both together."""
        return Count(self.linear + more.linear, self.expert + more.expert, self.other + more.other)


def count_parameters(
    fields: Fields, traits: Traits, shape: Shape, kinds: tuple[LayerKind, ...], state: StateShape | None
) -> Parameters:
    """The parameters of the whole model."""
    norm = shape.hidden * (2 if traits.norm_bias else 1)
    whole = Count(other=norm)
    for index, kind in enumerate(kinds):
        whole = whole.plus(Count(other=traits.norms * norm))
        if kind == "linear" and state is not None:
            whole = whole.plus(Count(state.linear_parameters, 0, state.other_parameters))
        else:
            whole = whole.plus(_attention(fields, traits, shape))
        whole = whole.plus(_mlp(fields, traits, shape, index))
    table = shape.vocabulary * shape.hidden
    return Parameters(whole.linear, whole.expert, table, 0 if traits.tied else table, whole.other)


def _attention(fields: Fields, traits: Traits, s: Shape) -> Count:
    rank = fields.number("kv_lora_rank")
    if rank:
        return _latent_attention(fields, s, rank)
    queries, keys = s.heads * s.head_dim, s.kv_heads * s.head_dim
    # Qwen3-Next makes a gate beside each query in the same matrix.
    width = queries * (2 if fields.text("model_type") == "qwen3_next" else 1)
    other = 2 * s.head_dim * traits.qk_norm + s.heads * traits.sinks
    other += (queries + 2 * keys) * traits.qkv_bias + s.hidden * traits.out_bias
    return Count(s.hidden * (width + 2 * keys) + queries * s.hidden, 0, other)


def _latent_attention(fields: Fields, s: Shape, rank: int) -> Count:
    rope, nope, value = fields.need("qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim")
    query_rank = fields.number("q_lora_rank")
    query_width = s.heads * (nope + rope)
    query = s.hidden * query_rank + query_rank * query_width if query_rank else s.hidden * query_width
    key = s.hidden * (rank + rope) + rank * s.heads * (nope + value)
    return Count(query + key + s.heads * value * s.hidden, 0, rank + (query_rank or 0))


def _mlp(fields: Fields, traits: Traits, s: Shape, index: int) -> Count:
    matrices = 3 if traits.gated else 2
    sparse = s.experts and index >= (fields.number("first_k_dense_replace") or 0)
    if not sparse:
        other = (s.intermediate + s.hidden) * traits.mlp_bias
        return Count(matrices * s.hidden * s.intermediate, 0, other)
    expert = s.experts * matrices * s.hidden * s.expert_intermediate
    shared_width = fields.number("shared_expert_intermediate_size")
    gate = s.hidden if shared_width else 0  # Qwen's shared expert has a gate of its own
    width = shared_width or (fields.number("n_shared_experts") or 0) * s.expert_intermediate
    router = s.hidden * s.experts + gate
    if fields.text("topk_method") == "noaux_tc":
        router += s.experts  # DeepSeek-V3's correction bias
    if traits.expert_bias:
        router += s.experts * (2 * s.expert_intermediate + s.hidden + 1)
    return Count(expert + matrices * s.hidden * width, expert, router)
