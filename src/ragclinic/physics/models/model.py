"""A model as memory and arithmetic see it, whatever file or table it came from."""

from collections import Counter
from dataclasses import dataclass

from ragclinic.physics.models.layer import Layer


@dataclass(frozen=True, slots=True)
class Parameters:
    """How many numbers the model is made of, by what a quantiser does with them.

    `linear` are the matrices inside the layers (the ones that weight-only quantisation shrinks), of which
    `expert` belong to routed experts; `embedding` and `head` are the token tables (a tied head counts 0);
    `other` are norms, biases, routers and convolutions.
    """

    linear: int
    expert: int
    embedding: int
    head: int
    other: int

    @property
    def total(self) -> int:
        """All parameters that are stored."""
        return self.linear + self.embedding + self.head + self.other


@dataclass(frozen=True, slots=True)
class Model:
    """A decoder-only language model. Widths are in elements, `window_tokens` is the longest trained context.

    `stored_bytes` is the exact size of the weights where a file told it (GGUF), `stored_type` the type that file
    or its `quantization_config` names, `repacked_bytes` the part of a GGUF that llama.cpp copies into another
    order on a CPU.
    """

    name: str
    layers: tuple[Layer, ...]
    hidden: int
    heads: int
    vocabulary: int
    intermediate: int
    parameters: Parameters
    window_tokens: int | None = None
    experts: int = 0
    experts_used: int = 0
    stored_type: str | None = None
    stored_bytes: int | None = None
    repacked_bytes: int = 0

    @property
    def attention(self) -> str:
        """The attention in the field's words: `MHA`, `GQA`, `MQA`, `MLA`, with `sliding` or `hybrid` added."""
        kinds = Counter(layer.kind for layer in self.layers)
        if kinds["latent"]:
            word = "MLA"
        else:
            kv_heads = max((layer.kv_heads for layer in self.layers), default=0)
            word = "MQA" if kv_heads == 1 else "MHA" if kv_heads == self.heads else "GQA"
        if kinds["linear"]:
            return f"{word}, hybrid with {kinds['linear']} linear layers"
        if kinds["sliding"]:
            return f"{word}, sliding window in {kinds['sliding']} of {len(self.layers)} layers"
        return word

    @property
    def active_linear(self) -> float:
        """Parameters of the layers' matrices that one token is multiplied with: of the experts only those used."""
        if not self.experts:
            return float(self.parameters.linear)
        dense = self.parameters.linear - self.parameters.expert
        return dense + self.parameters.expert * self.experts_used / self.experts

    @property
    def head_parameters(self) -> int:
        """Parameters of the output head, which a tied model shares with its embedding."""
        return self.parameters.head or self.hidden * self.vocabulary


def touched_share(tokens: float, experts: int, experts_used: int) -> float:
    """The share of all experts that a step of so many tokens reads, if each token chooses at random; 1 without.

    The expectation 1 - (1 - k/E)^t of the classical occupancy problem; real routers are less even, so this is an
    upper estimate of the bytes.
    """
    if not experts:
        return 1.0
    return float(1.0 - (1.0 - experts_used / experts) ** tokens)
