"""The allocations of loading a model: whole, layer by layer, or lazily when a part is first used.

Each load reads 16-bit tensors and keeps them in another type (quantised while loading, as bitsandbytes, llm-awq
and `load_in_4bit` do): the source lives beside the result until it is converted. What differs is how much of the
source is there at once, and when.
"""

from collections.abc import Iterator, Sequence

from ragclinic.physics.allocator.report import Event
from ragclinic.physics.models import Model
from ragclinic.physics.precision import WeightType

SOURCE_BYTES = 2
WORKING_SHARE = 0.25
"""Scratch of a conversion (scales, zero points, a 32-bit slice) as a share of the source tensor."""


def layer_tensors(model: Model) -> tuple[tuple[int, ...], ...]:
    """Elements of every matrix, layer by layer; the embedding comes first and the head last, each alone."""
    table = model.hidden * model.vocabulary
    layers = []
    for layer in model.layers:
        head_dim = max(1, layer.key_elements // max(1, layer.kv_heads))
        queries = model.hidden * model.heads * head_dim
        matrices = [
            queries,
            model.hidden * layer.key_elements,
            model.hidden * layer.value_elements,
            queries,
            *[model.hidden * model.intermediate] * (3 * max(1, model.experts)),
        ]
        layers.append(tuple(m for m in matrices if m))
    head = ((table,),) if model.parameters.head else ()
    return ((table,), *layers, *head)


def load_whole(model: Model, weights: WeightType) -> Iterator[Event]:
    """The whole checkpoint on the device first, then each tensor converted and its source released."""
    tensors = [t for layer in layer_tensors(model) for t in layer]
    for number, elements in enumerate(tensors):
        yield Event(_source(number), elements * SOURCE_BYTES)
    for number, elements in enumerate(tensors):
        yield from _convert(number, elements, weights)


def load_by_layer(model: Model, weights: WeightType) -> Iterator[Event]:
    """One layer on the device at a time."""
    number = 0
    for layer in layer_tensors(model):
        for offset, elements in enumerate(layer):
            yield Event(_source(number + offset), elements * SOURCE_BYTES)
        for offset, elements in enumerate(layer):
            yield from _convert(number + offset, elements, weights)
        number += len(layer)


def load_lazily(model: Model, weights: WeightType, used: Sequence[int]) -> Iterator[Event]:
    """Only the parts whose numbers are in `used` (0 the embedding, then the layers), one tensor at a time."""
    wanted = set(used)
    number = 0
    for part, layer in enumerate(layer_tensors(model)):
        for offset, elements in enumerate(layer):
            if part in wanted:
                yield Event(_source(number + offset), elements * SOURCE_BYTES)
                yield from _convert(number + offset, elements, weights)
        number += len(layer)


def _convert(number: int, elements: int, weights: WeightType) -> Iterator[Event]:
    scratch = 3 * number + 2
    yield Event(scratch, int(elements * SOURCE_BYTES * WORKING_SHARE))
    yield Event(3 * number + 1, int(elements * weights.linear_bits / 8))
    yield Event(scratch, None)
    yield Event(_source(number), None)


def _source(number: int) -> int:
    return 3 * number
