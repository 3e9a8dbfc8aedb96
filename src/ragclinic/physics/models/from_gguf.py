"""A model from a GGUF header: the keys translated to a configuration, the weights counted in the tensors."""

from collections import Counter
from dataclasses import replace
from typing import BinaryIO

from ragclinic.errors import BadInput
from ragclinic.physics.models.config import from_config
from ragclinic.physics.models.gguf_header import Header, Tensor, Value, read_header
from ragclinic.physics.models.model import Model, Parameters

ALIGNMENT_BYTES = 32
"""`general.alignment` where the file does not say (the specification's default)."""

REPACKED_TYPES = ("q4_0", "q4_k")
REPACKED_ROWS = 8
"""Checked against the server's log on AVX2 (docs/physics.md); ARM repacks `q8_0` and others too."""

FIELD_OF_KEY = {
    "block_count": "num_hidden_layers",
    "embedding_length": "hidden_size",
    "feed_forward_length": "intermediate_size",
    "context_length": "max_position_embeddings",
    "vocab_size": "vocab_size",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.key_length": "head_dim",
    "attention.sliding_window": "sliding_window",
    "attention.sliding_window_pattern": "sliding_window_pattern",
    "attention.kv_lora_rank": "kv_lora_rank",
    "attention.q_lora_rank": "q_lora_rank",
    "rope.dimension_count": "qk_rope_head_dim",
    "expert_count": "num_experts",
    "expert_used_count": "num_experts_per_tok",
    "expert_feed_forward_length": "moe_intermediate_size",
    "leading_dense_block_count": "first_k_dense_replace",
    "full_attention_interval": "full_attention_interval",
}
TYPE_OF_ARCHITECTURE = {"gemma2": "gemma2", "gemma3": "gemma3", "cohere2": "cohere2", "gpt-oss": "gpt_oss"}
"""Architectures whose code, not whose file, fixes which layers slide."""


def from_gguf(stream: BinaryIO, name: str) -> Model:
    """The model in a GGUF file, its weights exact to the byte; `name` is its name and what errors begin with.

    Raises:
        BadInput: no GGUF header, or keys are missing.
    """
    header = read_header(stream, name)
    architecture = header.values.get("general.architecture")
    if not isinstance(architecture, str):
        raise BadInput(
            f"{name}: no general.architecture; expected the GGUF of a language model; give another file"
        )
    model = from_config(_configuration(header, architecture), name)
    return replace(
        model,
        parameters=_parameters(header.tensors),
        stored_type=_commonest_type(header.tensors),
        stored_bytes=_mapped_bytes(header),
        repacked_bytes=sum(t.size_bytes for t in _repacked(header.tensors)),
    )


def _configuration(header: Header, architecture: str) -> dict[str, object]:
    found: dict[str, object] = {"model_type": TYPE_OF_ARCHITECTURE.get(architecture, architecture)}
    for key, field in FIELD_OF_KEY.items():
        value = header.values.get(f"{architecture}.{key}")
        if value is not None:
            found[field] = _one(value)
    found.setdefault("vocab_size", header.values.get("tokenizer.ggml.tokens.length"))
    rank = found.get("kv_lora_rank")
    if rank is None:
        found.pop("qk_rope_head_dim", None)
    else:
        key_dim = header.values.get(f"{architecture}.attention.key_length_mla")
        value_dim = header.values.get(f"{architecture}.attention.value_length_mla")
        rope = found.get("qk_rope_head_dim")
        if isinstance(key_dim, int) and isinstance(rope, int):
            found |= {"qk_nope_head_dim": key_dim - rope, "v_head_dim": value_dim}
    pattern = header.values.get(f"{architecture}.attention.sliding_window_pattern")
    if isinstance(pattern, list):
        del found["sliding_window_pattern"]
        found["layer_types"] = ["sliding_attention" if slides else "full_attention" for slides in pattern]
    return found


def _one(value: Value) -> object:
    """A key that is given for each layer, taken at its largest: memory is planned for the widest layer."""
    return max(value) if isinstance(value, list) and value else value


def _parameters(tensors: tuple[Tensor, ...]) -> Parameters:
    count: Counter[str] = Counter()
    for tensor in tensors:
        count[_part(tensor)] += tensor.elements
    return Parameters(
        linear=count["linear"] + count["expert"],
        expert=count["expert"],
        embedding=count["embedding"],
        head=count["head"],
        other=count["other"],
    )


def _part(tensor: Tensor) -> str:
    if tensor.name.startswith("token_embd"):
        return "embedding"
    if tensor.name.startswith("output.weight"):
        return "head"
    if "_exps." in tensor.name:
        return "expert"
    return "linear" if len(tensor.shape) > 1 and "_gate_inp." not in tensor.name else "other"


def _commonest_type(tensors: tuple[Tensor, ...]) -> str | None:
    elements: Counter[str] = Counter()
    for tensor in tensors:
        elements[tensor.type.name] += tensor.elements
    return elements.most_common(1)[0][0] if elements else None


def _repacked(tensors: tuple[Tensor, ...]) -> list[Tensor]:
    """The matrices that llama.cpp keeps in another order on a CPU with AVX2: whole groups of eight rows.

    The embedding is only looked up, so it stays as it is, unless it is the output head as well.
    """
    tied = not any(t.name == "output.weight" for t in tensors)
    return [
        t
        for t in tensors
        if t.type.name in REPACKED_TYPES
        and len(t.shape) == 2
        and t.shape[1] % REPACKED_ROWS == 0
        and (tied or not t.name.startswith("token_embd"))
    ]


def _mapped_bytes(header: Header) -> int:
    """From the first tensor to the end of the last: what llama.cpp maps and prints as its model buffer."""
    given = header.values.get("general.alignment")
    alignment = given if isinstance(given, int) and given > 0 else ALIGNMENT_BYTES
    ends = [t.offset_bytes + t.size_bytes for t in header.tensors]
    starts = [t.offset_bytes for t in header.tensors]
    return (max(ends) - min(starts) + alignment - 1) // alignment * alignment if ends else 0
