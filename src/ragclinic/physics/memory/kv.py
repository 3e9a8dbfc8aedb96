"""The KV cache in bytes: the one formula, its rounding to blocks, and llama.cpp's cells."""

from ragclinic.physics.models import Layer, Model
from ragclinic.physics.precision import KvType

CELL_TOKENS = 256
"""llama.cpp rounds the cells of each stream up to this (`GGML_PAD(n_ctx, 256)`)."""


def layer_kv_bytes(batch: int, tokens: int, kv_heads: int, head_dim: int, kv: KvType) -> int:
    """Bytes of one layer's keys and values: 2 x batch x tokens x KV heads x head dimension x bytes.

    Source: Pope et al., Efficiently Scaling Transformer Inference, arXiv 2211.05102, section 3.3. Batch 8, 4,096
    tokens, 32 heads of 128 in 16 bits are 536,870,912 bytes.
    """
    return 2 * batch * tokens * kv.row_bytes(kv_heads * head_dim)


def layer_token_bytes(layer: Layer, kv: KvType) -> int:
    """Bytes that one more token takes in this layer while it is inside the window."""
    return kv.row_bytes(layer.key_elements) + kv.row_bytes(layer.value_elements)


def token_bytes(model: Model, kv: KvType) -> int:
    """Bytes that one token takes in all layers (sliding layers give it back when it leaves the window)."""
    return sum(layer_token_bytes(layer, kv) for layer in model.layers)


def state_bytes(model: Model) -> int:
    """Bytes of fixed state for each sequence: linear attention and state-space layers."""
    return sum(layer.state_bytes for layer in model.layers)


def sequence_bytes(model: Model, context_tokens: int, kv: KvType, block_tokens: int = 1) -> int:
    """Bytes of one sequence of this length, each layer's tokens rounded up to whole blocks.

    The last block is half empty on average: the internal fragmentation of paging (vLLM, arXiv 2309.06180,
    section 4). What the block ends are beyond the context is counted here, since it is allocated.
    """
    held = sum(
        round_up(layer.held_tokens(context_tokens), block_tokens) * layer_token_bytes(layer, kv)
        for layer in model.layers
    )
    return held + state_bytes(model)


def llama_cpp_caches(
    model: Model,
    context_tokens: int,
    slots: int,
    kv: KvType,
    unified: bool = False,
    micro_batch_tokens: int = 512,
) -> tuple[int, ...]:
    """What llama.cpp allocates as "KV buffer size" for `n_ctx` and `n_parallel`, to the byte, a number a cache.

    Without a unified cache each slot has a stream of its own with n_ctx / n_parallel cells, rounded up. A model
    with a window has two caches, of its full and of its sliding layers; the latter holds the window and one
    micro-batch (llama.cpp, `llama_kv_cache` and `llama_kv_cache_iswa`).
    """
    streams = 1 if unified else slots
    cells = round_up(-(-context_tokens // streams), CELL_TOKENS)
    sizes = {False: 0, True: 0}
    for layer in model.layers:
        own = cells
        if layer.window_tokens is not None:
            window = layer.window_tokens * (slots if unified else 1) + micro_batch_tokens
            own = round_up(min(cells, window), CELL_TOKENS)
        sizes[layer.window_tokens is not None] += streams * own * layer_token_bytes(layer, kv)
    return tuple(size for size in sizes.values() if size)


def round_up(tokens: int, block_tokens: int) -> int:
    """Tokens in whole blocks."""
    return -(-tokens // block_tokens) * block_tokens
