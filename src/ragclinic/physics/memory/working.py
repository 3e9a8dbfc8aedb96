"""What a server needs beside weights and cache, as a stated estimate: activations, graphs, the runtime itself."""

from ragclinic.physics.models import Model

ACTIVATION_BYTES = 2
LOGIT_BYTES = 10
"""For each entry of a row of logits: the 16-bit product, its 32-bit copy and the sampler's sorted copy."""
GRAPH_BYTES_PER_LAYER = 8 << 20
"""Captured CUDA graphs: 0.25 GiB for 32 layers; vLLM's "Graph capturing finished ... took" says 0.2 to 0.9 GiB."""
RUNTIME_BYTES = 512 << 20
"""CUDA context, libraries and communication buffers of one process on one device (observed 0.3 to 0.9 GiB)."""


def activation_bytes(model: Model, step_tokens: int, sequences: int) -> int:
    """The peak of one step of `step_tokens` tokens: an estimate, within about a quarter.

    At the MLP the residual and its norm (2 x hidden) live beside gate, up and their product (3 x intermediate);
    of a mixture of experts the rows of all chosen experts. After it come the logits of each sequence. For
    Llama-3-8B, 8,192 tokens and 256 sequences this is 1.1 GiB; vLLM's memory profile says 1.2 GiB.
    """
    rows = max(1, model.experts_used)
    widths = 2 * model.hidden + 3 * model.intermediate * rows + (model.hidden * rows if model.experts else 0)
    return step_tokens * widths * ACTIVATION_BYTES + sequences * model.vocabulary * LOGIT_BYTES


def graph_bytes(model: Model) -> int:
    """The reserve for captured CUDA graphs: an estimate."""
    return len(model.layers) * GRAPH_BYTES_PER_LAYER
