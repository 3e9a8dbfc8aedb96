"""Time: prefill, decode, attention, transfers, unpacking and launching, from bytes and operations."""

from ragclinic.physics.roofline.dequantise import AWQ_GEMM, KERNELS, MARLIN, Kernel
from ragclinic.physics.roofline.launch import graph_gain, launched_ms
from ragclinic.physics.roofline.phases import crossover_batch, decode_ms, pairs, prefill_ms
from ragclinic.physics.roofline.rates import Rates, assumed_rates
from ragclinic.physics.roofline.step import Step, StepCost, step_cost
from ragclinic.physics.roofline.transfer import all_reduce_ms, host_ms, peer_ms

__all__ = [
    "AWQ_GEMM",
    "KERNELS",
    "MARLIN",
    "Kernel",
    "Rates",
    "Step",
    "StepCost",
    "all_reduce_ms",
    "assumed_rates",
    "crossover_batch",
    "decode_ms",
    "graph_gain",
    "host_ms",
    "launched_ms",
    "pairs",
    "peer_ms",
    "prefill_ms",
    "step_cost",
]
