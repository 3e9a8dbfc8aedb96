"""The weights in bytes, in the type they are stored or served in."""

from ragclinic.physics.models import Model
from ragclinic.physics.precision import WeightType


def weights_bytes(model: Model, weights: WeightType | None) -> int:
    """Bytes of all weights in this type, or with None as they are stored.

    Exact for a GGUF file with None (`Model.stored_bytes`), and for 16-bit types; AWQ and GPTQ count scales, zero
    points and indices; mixtures of llama.cpp are the published average. Raises `ValueError` where None is given
    for a model that no file tells.
    """
    if weights is None:
        if model.stored_bytes is None:
            raise ValueError(f"{model.name}: the stored size is not known; name a weight type")
        return model.stored_bytes
    count = model.parameters
    if weights.all_bits is not None:
        return round(count.total * weights.all_bits / 8)
    # llama.cpp keeps norms and biases in 32 bits whatever the matrices' type; the others in the 16-bit type.
    other_bits = 16 if weights.table_bits == 16 else 32
    bits = (
        count.linear * weights.linear_bits
        + (count.embedding + count.head) * weights.table_bits
        + count.other * other_bits
        + _input_rows(model) * weights.row_bits
    )
    return round(bits / 8)


def llama_cpp_weights(model: Model, repack: bool) -> tuple[int, ...]:
    """What llama.cpp allocates as "model buffer size" for a GGUF file on a CPU, to the byte, a number a buffer.

    The file is mapped from its first to its last tensor; on a CPU whose kernels want another order (`repack`:
    with AVX2, of types `q4_0` and `q4_k`) those matrices are copied beside it, so Q4_0 takes twice its size.
    Raises `ValueError` for a model that does not come from a GGUF file.
    """
    if model.stored_bytes is None:
        raise ValueError(f"{model.name}: not a GGUF file, so what llama.cpp maps is not known")
    copies = (model.repacked_bytes,) if repack and model.repacked_bytes else ()
    return (model.stored_bytes, *copies)


def _input_rows(model: Model) -> int:
    """Rows of input of all matrices in the layers: seven matrices, of which the last down-projects."""
    experts = max(1, model.experts)
    return len(model.layers) * (4 * model.hidden + experts * (2 * model.hidden + model.intermediate))
