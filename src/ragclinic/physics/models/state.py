"""The fixed state of linear attention and state-space layers: its bytes for a sequence, and their parameters."""

from typing import NamedTuple

from ragclinic.physics.models.fields import Fields

CONV_BYTES = 2
"""The convolution's window is kept in the model's 16-bit type."""
RECURRENT_BYTES = 4
"""The recurrent state is kept in float32, as the reference code of Qwen3-Next and Mamba-2 does."""


class StateShape(NamedTuple):
    """One linear layer: elements of its convolution window and recurrent state, and its parameters."""

    conv_elements: int
    recurrent_elements: int
    linear_parameters: int
    other_parameters: int

    @property
    def state_bytes(self) -> int:
        """Bytes kept for each sequence."""
        return self.conv_elements * CONV_BYTES + self.recurrent_elements * RECURRENT_BYTES


def state_shape(fields: Fields, hidden: int) -> StateShape | None:
    """The shape of the configuration's linear layers, or None where it describes none that is known."""
    if fields.number("linear_num_value_heads"):
        return _delta_net(fields, hidden)
    if fields.number("mamba_d_state") or fields.number("ssm_state_size"):
        return _mamba2(fields, hidden)
    return None


def _delta_net(fields: Fields, hidden: int) -> StateShape:
    """Gated DeltaNet (Qwen3-Next): a key x value matrix for each value head, after a short convolution."""
    key_heads, value_heads, key_dim, value_dim, kernel = fields.need(
        "linear_num_key_heads",
        "linear_num_value_heads",
        "linear_key_head_dim",
        "linear_value_head_dim",
        "linear_conv_kernel_dim",
    )
    keys, values = key_heads * key_dim, value_heads * value_dim
    channels = 2 * keys + values
    return StateShape(
        conv_elements=channels * (kernel - 1),
        recurrent_elements=value_heads * key_dim * value_dim,
        linear_parameters=hidden * (2 * keys + 2 * values + 2 * value_heads) + values * hidden,
        other_parameters=channels * kernel + 2 * value_heads + value_dim,
    )


def _mamba2(fields: Fields, hidden: int) -> StateShape:
    """Mamba-2: a head x state matrix for each head (arXiv 2405.21060), after a short convolution."""
    heads = fields.number("mamba_n_heads") or fields.number("mamba_num_heads")
    dim = fields.number("mamba_d_head") or fields.number("mamba_head_dim")
    size = fields.number("mamba_d_state") or fields.number("ssm_state_size")
    if not (heads and dim and size):
        raise fields.bad("mamba_n_heads", heads, "mamba_n_heads, mamba_d_head and mamba_d_state")
    groups = fields.number("mamba_n_groups") or fields.number("n_groups") or 1
    kernel = fields.number("mamba_d_conv") or fields.number("conv_kernel") or 4
    inner = heads * dim
    channels = inner + 2 * groups * size
    return StateShape(
        conv_elements=channels * (kernel - 1),
        recurrent_elements=heads * dim * size,
        linear_parameters=hidden * (2 * inner + 2 * groups * size + heads) + inner * hidden,
        other_parameters=channels * (kernel + 1) + 3 * heads + inner,
    )
