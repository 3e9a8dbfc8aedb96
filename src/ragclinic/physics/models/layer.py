"""One layer of a model as memory and arithmetic see it: what it keeps for each token, and for each sequence."""

from dataclasses import dataclass
from typing import Literal

LayerKind = Literal["full", "sliding", "latent", "linear"]
"""`full` keeps keys and values of every token, `sliding` of the last window, `latent` one compressed vector
(MLA), `linear` a state of fixed size (linear attention, state space)."""


@dataclass(frozen=True, slots=True)
class Layer:
    """What a layer keeps and computes.

    `key_elements` and `value_elements` are kept for each token: KV heads x head dimension, or for MLA the latent
    plus the rotary part and no value (DeepSeek-V2, arXiv 2405.04434, section 2.1). `state_bytes` is kept once for
    each sequence. `prefill_pair_flops` and `decode_pair_flops` are the floating point operations for one query
    and one token it attends to: 2 for each multiply-add of the score, 2 for each of the weighted sum.
    """

    kind: LayerKind
    kv_heads: int
    key_elements: int
    value_elements: int
    prefill_pair_flops: int
    decode_pair_flops: int
    window_tokens: int | None = None
    state_bytes: int = 0

    def held_tokens(self, context_tokens: int) -> int:
        """How many of the context's tokens this layer keeps."""
        if self.kind == "linear":
            return 0
        return context_tokens if self.window_tokens is None else min(context_tokens, self.window_tokens)


def attention(heads: int, kv_heads: int, key_dim: int, value_dim: int, window_tokens: int | None) -> Layer:
    """A layer of multi-head, grouped-query or multi-query attention; they differ in `kv_heads` alone."""
    pair_flops = 2 * heads * (key_dim + value_dim)
    return Layer(
        kind="full" if window_tokens is None else "sliding",
        kv_heads=kv_heads,
        key_elements=kv_heads * key_dim,
        value_elements=kv_heads * value_dim,
        prefill_pair_flops=pair_flops,
        decode_pair_flops=pair_flops,
        window_tokens=window_tokens,
    )


def latent(heads: int, rank: int, rope_dim: int, nope_dim: int, value_dim: int) -> Layer:
    """A layer of multi-head latent attention.

    Prefill expands the latent into heads; decode absorbs the expansion into query and output and so attends in
    the latent space, with more arithmetic but without expanding the cache (arXiv 2405.04434, section 2.1.2).
    """
    return Layer(
        kind="latent",
        kv_heads=1,
        key_elements=rank + rope_dim,
        value_elements=0,
        prefill_pair_flops=2 * heads * (nope_dim + rope_dim + value_dim),
        decode_pair_flops=2 * heads * (2 * rank + rope_dim),
    )


def linear(state_bytes: int) -> Layer:
    """A layer that keeps a state of fixed size and nothing for each token."""
    return Layer("linear", 0, 0, 0, 0, 0, state_bytes=state_bytes)
