"""Which layer of a model is of which kind, from the several ways in which configurations say so."""

from ragclinic.physics.models.fields import Fields
from ragclinic.physics.models.layer import LayerKind

KIND_OF_TYPE: dict[str, LayerKind] = {
    "full_attention": "full",
    "attention": "full",
    "sliding_attention": "sliding",
    "chunked_attention": "sliding",
    "linear_attention": "linear",
    "mamba": "linear",
    "recurrent": "linear",
}
"""`layer_types` and `layers_block_type` of transformers."""

EVERY_NTH_FULL = {"gemma2": 2, "gemma3": 6, "gemma3_text": 6, "cohere2": 4, "gpt_oss": 2, "llama4_text": 4}
"""Model types whose code fixes that every n-th layer sees the whole context and the others a window."""


def layer_kinds(fields: Fields, count: int) -> tuple[LayerKind, ...]:
    """The kind of each of the `count` layers, MLA not yet told from full.

    Raises:
        BadInput: a list of layer types has another length than the model has layers, or an unknown type.
    """
    for name in ("layer_types", "layers_block_type"):
        types = fields.names(name)
        if types is not None:
            return _by_type(fields, name, types, count)
    interval = fields.number("full_attention_interval")
    if interval:
        return tuple("full" if (i + 1) % interval == 0 else "linear" for i in range(count))
    period = fields.number("attn_layer_period")
    if period:
        offset = fields.number("attn_layer_offset") or 0
        return tuple("full" if i % period == offset else "linear" for i in range(count))
    if window_tokens(fields) is None:
        return _every(1, count)
    nth = fields.number("sliding_window_pattern") or EVERY_NTH_FULL.get(fields.text("model_type"))
    if nth:
        return _every(nth, count)
    first = (fields.number("max_window_layers") or 0) if fields.flag("use_sliding_window") else 0
    return tuple("full" if i < first else "sliding" for i in range(count))


def _every(nth: int, count: int) -> tuple[LayerKind, ...]:
    """Every n-th layer full, the others sliding."""
    return tuple("full" if (i + 1) % nth == 0 else "sliding" for i in range(count))


def window_tokens(fields: Fields) -> int | None:
    """How far sliding layers look back, or None where the model has none (or switches its window off)."""
    if not fields.flag("use_sliding_window", default=True):
        return None
    return fields.number("sliding_window") or fields.number("attention_chunk_size")


def _by_type(fields: Fields, name: str, types: list[str], count: int) -> tuple[LayerKind, ...]:
    if len(types) != count:
        raise fields.bad(name, f"{len(types)} entries", f"one for each of the {count} layers")
    unknown = sorted({t for t in types if t not in KIND_OF_TYPE})
    if unknown:
        raise fields.bad(name, unknown[0], f"one of {', '.join(KIND_OF_TYPE)}")
    return tuple(KIND_OF_TYPE[t] for t in types)
