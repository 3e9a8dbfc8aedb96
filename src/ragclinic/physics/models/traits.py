"""What a family's code adds to every model of it and no configuration says: norms, biases, gates, tied tables."""

from typing import NamedTuple

from ragclinic.physics.models.fields import Fields


class Traits(NamedTuple):
    """Per layer: `norms` of the hidden width, a norm on each head's query and key, biases; for the MLP whether it
    has a gate (three matrices instead of two)."""

    norms: int = 2
    qk_norm: bool = False
    qkv_bias: bool = False
    out_bias: bool = False
    gated: bool = True
    tied: bool = False
    norm_bias: bool = False
    mlp_bias: bool = False
    expert_bias: bool = False
    sinks: bool = False


LLAMA = Traits()
TRAITS: dict[str, Traits] = {
    "qwen2": Traits(qkv_bias=True),
    "qwen2_moe": Traits(qkv_bias=True),
    "qwen3": Traits(qk_norm=True),
    "qwen3_moe": Traits(qk_norm=True),
    "qwen3_next": Traits(qk_norm=True),
    "gemma": Traits(tied=True),
    "gemma2": Traits(norms=4, tied=True),
    "gemma3": Traits(norms=4, qk_norm=True, tied=True),
    "gemma3_text": Traits(norms=4, qk_norm=True, tied=True),
    "falcon": Traits(norms=1, norm_bias=True, gated=False, tied=True),
    "starcoder2": Traits(norm_bias=True, qkv_bias=True, out_bias=True, gated=False, mlp_bias=True, tied=True),
    "gpt_oss": Traits(qkv_bias=True, out_bias=True, expert_bias=True, sinks=True),
    "chatglm": Traits(qkv_bias=True),
    "cohere2": Traits(norms=1, tied=True),
}
"""Read in each family's modelling code in transformers; a family not named is built like Llama."""


def traits(fields: Fields) -> Traits:
    """The traits of the configuration's family, with what the configuration itself says laid over."""
    found = TRAITS.get(fields.text("model_type"), LLAMA)
    biased = fields.flag("attention_bias")
    return found._replace(
        qkv_bias=found.qkv_bias or biased,
        out_bias=found.out_bias or biased,
        tied=fields.flag("tie_word_embeddings", default=found.tied),
    )
