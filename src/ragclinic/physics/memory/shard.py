"""Tensor and pipeline parallelism: the model as the fullest of the devices sees it.

Every formula of memory and time is then applied to that share as to a whole model. Source of the split: Shoeybi
et al., Megatron-LM, arXiv 1909.08053, section 3 (heads and MLP columns divided, norms repeated), and for caches
vLLM's rule that KV heads are repeated where there are fewer of them than devices.
"""

from collections.abc import Sequence
from dataclasses import replace

from ragclinic.physics.models import Layer, Model, Parameters


def shard(model: Model, tensor: int = 1, pipeline: int = 1) -> Model:
    """One device's share with `tensor` x `pipeline` devices; with 1 x 1 the model itself."""
    if tensor == pipeline == 1:
        return model
    stage = _fullest_stage(model.layers, pipeline)
    share = len(stage) / len(model.layers)
    count = model.parameters
    # The first stage holds the embedding, the last the head; the larger table is what the fullest stage has.
    embedding = -(-count.embedding // tensor)
    head = -(-count.head // tensor) if pipeline == 1 else 0
    return replace(
        model,
        layers=tuple(_narrow(layer, tensor) for layer in stage),
        heads=-(-model.heads // tensor),
        intermediate=-(-model.intermediate // tensor),
        parameters=Parameters(
            linear=round(count.linear * share / tensor),
            expert=round(count.expert * share / tensor),
            embedding=embedding,
            head=head,
            other=round(count.other * share),
        ),
        repacked_bytes=round(model.repacked_bytes * share / tensor),
        stored_bytes=None if model.stored_bytes is None else round(model.stored_bytes * share / tensor),
    )


def _fullest_stage(layers: Sequence[Layer], pipeline: int) -> Sequence[Layer]:
    """The stage whose layers keep most for each token, stages being as even as they can be."""
    size = -(-len(layers) // pipeline)
    stages = [layers[start : start + size] for start in range(0, len(layers), size)]
    return max(stages, key=lambda s: (sum(x.key_elements + x.value_elements for x in s), len(s)))


def _narrow(layer: Layer, tensor: int) -> Layer:
    """The layer's share: KV heads divided, repeated where there are too few; a latent is whole on each device."""
    if layer.kind == "latent":
        keys, values, kv_heads = layer.key_elements, layer.value_elements, 1
    elif layer.kind == "linear":
        keys = values = kv_heads = 0
    else:
        kv_heads = max(1, -(-layer.kv_heads // tensor))
        keys = layer.key_elements // layer.kv_heads * kv_heads
        values = layer.value_elements // layer.kv_heads * kv_heads
    return replace(
        layer,
        kv_heads=kv_heads,
        key_elements=keys,
        value_elements=values,
        prefill_pair_flops=-(-layer.prefill_pair_flops // tensor),
        decode_pair_flops=-(-layer.decode_pair_flops // tensor),
        state_bytes=-(-layer.state_bytes // tensor),
    )
