"""What share of a device's peaks is reached, and what a step costs beside its arithmetic."""

from dataclasses import dataclass

from ragclinic.physics.hardware import Device


@dataclass(frozen=True, slots=True)
class Rates:
    """Shares 0..1 of the peaks, and the costs of launching.

    `matrix_share` is for the matrix products, `attention_share` for the products of attention, `bandwidth_share`
    for reading weights and cache. `host_ms` is the server's own work for a step (scheduling, sampling,
    detokenising), `kernel_launch_ms` what the host needs to launch one kernel, `graph_node_ms` what one kernel
    costs beside its work inside a captured graph.
    """

    matrix_share: float
    attention_share: float
    bandwidth_share: float
    host_ms: float
    kernel_launch_ms: float = 0.0
    graph_node_ms: float = 0.0


GPU_RATES = Rates(
    matrix_share=0.65,
    attention_share=0.5,
    bandwidth_share=0.8,
    host_ms=1.0,
    kernel_launch_ms=0.006,
    graph_node_ms=0.0005,
)
"""Matrix products: cuBLAS on large shapes reaches 60 to 75 % of the dense peak. Attention: FlashAttention-2
(arXiv 2307.08691, figure 4) 50 to 73 % on A100. Bandwidth: streaming kernels reach 80 to 90 %. A launch: 2.2 us by
CUDA itself and about 4 us more by PyTorch's dispatcher; a graph node 0.5 us (NVIDIA, Getting Started with CUDA
Graphs: 3.4 us for a kernel of 2.9 us)."""
CPU_RATES = Rates(matrix_share=0.4, attention_share=0.2, bandwidth_share=0.7, host_ms=0.5)
"""Assumed for llama.cpp on a CPU; `plan --calibrate` measures instead."""


def assumed_rates(device: Device) -> Rates:
    """The assumed rates for a device of this kind."""
    return CPU_RATES if device.kind == "cpu" else GPU_RATES
