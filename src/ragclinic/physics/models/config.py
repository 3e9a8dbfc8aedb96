"""A model from a Hugging Face `config.json`."""

from collections.abc import Mapping

from ragclinic.physics.models.fields import NAMES, Fields
from ragclinic.physics.models.layer import Layer, LayerKind, attention, latent, linear
from ragclinic.physics.models.model import Model
from ragclinic.physics.models.parameters import Shape, count_parameters
from ragclinic.physics.models.patterns import layer_kinds, window_tokens
from ragclinic.physics.models.state import StateShape, state_shape
from ragclinic.physics.models.traits import traits

MAX_LAYERS = 1024
"""Eight times the deepest model in the table: a damaged header says billions, and each would be built."""


def from_config(values: Mapping[str, object], name: str) -> Model:
    """The model that a configuration describes; `name` is its name and what errors begin with.

    A multimodal configuration's `text_config` is taken.

    Raises:
        BadInput: fields are missing (all are named) or cannot be used.
    """
    nested = values.get("text_config")
    inner = {**values, **nested} if isinstance(nested, Mapping) else values
    fields = Fields(inner, name)
    count, hidden, heads, vocabulary = fields.need("layers", "hidden", "heads", "vocabulary")
    if count > MAX_LAYERS:
        raise fields.bad("num_hidden_layers", count, f"at most {MAX_LAYERS:,} layers")
    shape = _shape(fields, hidden, heads, vocabulary)
    kinds = layer_kinds(fields, count)
    state = state_shape(fields, hidden)
    if "linear" in kinds and state is None:
        raise fields.bad(
            "layer_types", "linear layers", "linear_num_value_heads ... or mamba_n_heads ... beside them"
        )
    return Model(
        name=name,
        layers=tuple(_layer(fields, shape, kind, state) for kind in kinds),
        hidden=hidden,
        heads=heads,
        vocabulary=vocabulary,
        intermediate=shape.intermediate or shape.expert_intermediate,
        parameters=count_parameters(fields, traits(fields), shape, kinds, state),
        window_tokens=fields.number("window"),
        experts=shape.experts,
        experts_used=(fields.number("experts_used") or 0) if shape.experts else 0,
        stored_type=_stored_type(fields),
    )


def _shape(fields: Fields, hidden: int, heads: int, vocabulary: int) -> Shape:
    experts = fields.number("experts") or 0
    intermediate = fields.number("intermediate") or 0
    expert_intermediate = fields.number("expert_intermediate") or intermediate
    if not intermediate and not expert_intermediate:
        if fields.text("model_type") not in ("falcon", "gpt2"):
            fields.need("intermediate")
        intermediate = 4 * hidden  # the code of these families fixes it
    if experts:
        fields.need("experts_used")
    head_dim = fields.number("head_dim")
    if not head_dim:
        if hidden % heads:
            raise fields.bad(NAMES["heads"][0], heads, f"a divisor of the hidden size {hidden}, or head_dim")
        head_dim = hidden // heads
    kv_heads = _kv_heads(fields, heads)
    return Shape(hidden, heads, kv_heads, head_dim, vocabulary, intermediate, experts, expert_intermediate)


def _kv_heads(fields: Fields, heads: int) -> int:
    """Falcon says MQA with a flag; whoever says nothing has a KV head for each head."""
    if fields.flag("multi_query") and not fields.flag("new_decoder_architecture"):
        return 1
    kv_heads = fields.number("kv_heads") or heads
    if heads % kv_heads:
        raise fields.bad(NAMES["kv_heads"][0], kv_heads, f"a divisor of the {heads} attention heads")
    return kv_heads


def _layer(fields: Fields, s: Shape, kind: LayerKind, state: StateShape | None) -> Layer:
    if kind == "linear" and state is not None:
        return linear(state.state_bytes)
    rank = fields.number("kv_lora_rank")
    if rank:
        rope, nope, value = fields.need("qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim")
        return latent(s.heads, rank, rope, nope, value)
    window = window_tokens(fields) if kind == "sliding" else None
    return attention(s.heads, s.kv_heads, s.head_dim, s.head_dim, window)


def _stored_type(fields: Fields) -> str | None:
    method = fields.mapping("quantization_config").get("quant_method")
    return str(method) if method else None
