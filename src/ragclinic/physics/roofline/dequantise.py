"""What unpacking weight-only integers costs, and past which batch it costs more than it saves.

Every tile of rows unpacks every weight again: shift, mask, subtract the zero point, convert, multiply by the
scale, on the ordinary units and beside the loads; the matrix units then do the work of 16 bits. So the cost grows
with the rows of a step while what is saved, bytes, does not.

The two constants of a kernel reproduce public measurements on an A100. Marlin (vllm-project/vllm#2497): faster
than 16 bits by 3.1 at batch 1, by 1.0 at 128, by 0.60 at 2,048. AutoAWQ's GEMM (casper-hansen/AutoAWQ#106,
vllm#1545): a little faster up to 32, half as fast at 256, first token 2 to 5 times slower.
"""

import math
from typing import NamedTuple


class Kernel(NamedTuple):
    """A kernel for packed weights: rows of input that share one unpacking, and operations to unpack a weight."""

    name: str
    tile_rows: int
    weight_ops: float


MARLIN = Kernel("marlin", 64, 8.0)
AWQ_GEMM = Kernel("awq-gemm", 16, 7.0)
KERNELS = {k.name: k for k in (MARLIN, AWQ_GEMM)}


def unpack_ms(kernel: Kernel, weights: float, rows: float, vector_flops: float) -> float:
    """Milliseconds to unpack `weights` numbers for a step of `rows` tokens."""
    tiles = math.ceil(rows / kernel.tile_rows)
    return weights * tiles * kernel.weight_ops / vector_flops * 1000


def packed_ms(read_ms: float, unpacking_ms: float, product_ms: float) -> float:
    """A product with packed weights: unpacking hides behind the loads while they last, not behind the product."""
    return max(read_ms, unpacking_ms) + product_ms
