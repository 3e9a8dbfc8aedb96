"""Number types: how many bits a KV cache and the weights take in each, scales and zero points included."""

import re
from typing import NamedTuple

from ragclinic.errors import BadInput
from ragclinic.physics.ggml import BY_NAME
from ragclinic.physics.nearest import nearest


class KvType(NamedTuple):
    """A type of KV cache entry: `block_elements` numbers take `block_bytes` bytes."""

    name: str
    block_elements: int
    block_bytes: int

    @property
    def element_bytes(self) -> float:
        """Bytes for one number."""
        return self.block_bytes / self.block_elements

    def row_bytes(self, elements: int) -> int:
        """Bytes for a row of so many numbers, whole blocks."""
        return -(-elements // self.block_elements) * self.block_bytes


class WeightType(NamedTuple):
    """A type of weights: bits for a number of the layers' matrices and of the two token tables.

    `all_bits` is set where only an average over the whole file is published (the mixtures of llama.cpp).
    `row_bits` is added for every row of input of a matrix. `compute` names the arithmetic of the matrix products,
    a key of a device's FLOPS; `packed` says that weights are unpacked to that type first.
    """

    name: str
    linear_bits: float
    table_bits: float
    compute: str
    packed: bool = False
    row_bits: int = 0
    all_bits: float | None = None


# Two 8-bit caches keep one scale for a whole tensor (vLLM `fp8`, TensorRT-LLM `int8`): nothing for a token.
_KV = {
    "f32": KvType("f32", 1, 4),
    "f16": KvType("f16", 1, 2),
    "bf16": KvType("bf16", 1, 2),
    "fp8": KvType("fp8", 1, 1),
    "int8": KvType("int8", 1, 1),
    **{
        n: KvType(n, t.block_elements, t.block_bytes)
        for n, t in BY_NAME.items()
        if n in ("q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl")
    },
}
_ALIASES = {"fp32": "f32", "fp16": "f16", "auto": "f16", "fp8_e4m3": "fp8", "fp8_e5m2": "fp8", "half": "f16"}

_SCALE_BITS, _INDEX_BITS = 16, 32
_PLAIN = {
    "f32": WeightType("f32", 32, 32, "fp32"),
    "f16": WeightType("f16", 16, 16, "fp16"),
    "bf16": WeightType("bf16", 16, 16, "fp16"),
    "fp8": WeightType("fp8", 8, 16, "fp8"),
    "int8": WeightType("int8", 8, 16, "int8"),
    # OCP microscaling: blocks of 32 with an 8-bit scale (as gpt-oss stores its experts)
    "mxfp4": WeightType("mxfp4", 4 + 8 / 32, 16, "fp16", packed=True),
    # bitsandbytes: blocks of 64 with an 8-bit scale, and a 32-bit scale for each 256 of those (QLoRA, 2305.14314)
    "nf4": WeightType("nf4", 4 + 8 / 64 + 32 / (64 * 256), 16, "fp16", packed=True),
}
MIXTURE_BITS = {
    "iq1_s": 2.0042, "iq1_m": 2.1460, "iq2_xxs": 2.3824, "iq2_xs": 2.5882, "iq2_s": 2.7403, "iq2_m": 2.9294,
    "iq3_xxs": 3.2548, "iq3_xs": 3.4977, "iq3_s": 3.6606, "iq3_m": 3.7628, "iq4_xs": 4.4597, "iq4_nl": 4.6818,
    "q2_k_s": 2.9697, "q2_k": 3.1593, "q3_k_s": 3.6429, "q3_k_m": 3.9960, "q3_k_l": 4.2979, "q4_k_s": 4.6672,
    "q4_k_m": 4.8944, "q5_k_s": 5.5704, "q5_k_m": 5.7036, "q6_k": 6.5633,
}  # fmt: skip
"""Average bits of llama.cpp's mixtures, measured on Llama-3.1-8B (llama.cpp, tools/quantize/README.md; `q3_k_m`
is missing there and stands at the mean of its neighbours). A GGUF file tells its own size exactly."""

GROUPED = re.compile(r"(awq|gptq)(?:-(\d))?(?:-g(\d+))?")


def kv_type(name: str) -> KvType:
    """The KV cache type of this name.

    Raises:
        BadInput: no such type; the message lists the nearest.
    """
    plain = _ALIASES.get(name.lower(), name.lower())
    if plain not in _KV:
        raise BadInput(
            f"KV type {name}: not known; the nearest are {', '.join(nearest(plain, _KV))}; "
            f"expected one of {', '.join(_KV)}"
        )
    return _KV[plain]


def weight_type(name: str) -> WeightType:
    """The weight type of this name: `fp16`, `awq` (groups of 128), `gptq-8-g64`, `q4_k_m`, any GGUF type ...

    Raises:
        BadInput: no such type; the message lists the nearest.
    """
    plain = _ALIASES.get(name.lower(), name.lower())
    if plain in _PLAIN:
        return _PLAIN[plain]
    grouped = GROUPED.fullmatch(plain)
    if grouped:
        return _grouped(plain, grouped[1], int(grouped[2] or 4), int(grouped[3] or 128))
    if plain in MIXTURE_BITS:
        bits = MIXTURE_BITS[plain]
        return WeightType(plain, bits, bits, "fp16", packed=True, all_bits=bits)
    if plain in BY_NAME:
        bits = BY_NAME[plain].bits
        return WeightType(plain, bits, bits, "fp16", packed=True)
    known = known_weight_types()
    raise BadInput(
        f"weights {name}: not known; the nearest are {', '.join(nearest(plain, known))}; "
        "expected a type such as fp16, fp8, int8, awq, gptq, q4_k_m or q8_0"
    )


def known_kv_types() -> tuple[str, ...]:
    """All KV cache types by name."""
    return tuple(_KV)


def known_weight_types() -> tuple[str, ...]:
    """All weight types by name, with groups of 128 where there are groups."""
    return (*_PLAIN, "awq", "gptq", *MIXTURE_BITS, *(n for n in BY_NAME if n not in MIXTURE_BITS))


def _grouped(name: str, method: str, bits: int, group: int) -> WeightType:
    """Weight-only integers with a 16-bit scale and a zero point for each group of a column.

    AWQ (arXiv 2306.00978) and GPTQ (arXiv 2210.17323) as AutoAWQ and AutoGPTQ store them: the zero point has the
    weight's bits; GPTQ adds an index of 32 bits for each row of input (`g_idx`). Tables stay in 16 bits.
    """
    if bits not in (2, 3, 4, 8) or group < 1:
        raise BadInput(
            f"weights {name}: {bits} bits in groups of {group}; expected 2, 3, 4 or 8 bits, as awq-4-g128"
        )
    return WeightType(
        name,
        bits + (_SCALE_BITS + bits) / group,
        16,
        "fp16",
        packed=True,
        row_bits=_INDEX_BITS if method == "gptq" else 0,
    )
