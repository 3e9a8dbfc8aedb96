"""Launching kernels: when the host cannot keep up with the device, and what a captured CUDA graph saves."""

from ragclinic.physics.roofline.rates import Rates

KERNELS_PER_LAYER = 12
"""Norms, QKV, rotary, cache write, attention, output, gate and up, activation, down, and two additions."""


def kernels(layers: int) -> int:
    """Kernels of one forward step: the layers' and five for embedding, last norm, head and sampling."""
    return layers * KERNELS_PER_LAYER + 5


def launched_ms(work_ms: float, layers: int, rates: Rates, graph: bool) -> float:
    """A step of `work_ms` on the device, launched kernel by kernel or as a captured graph.

    Without a graph the host launches ahead of the device, so the longer of the two counts; with one each node
    costs a little beside its work.
    """
    count = kernels(layers)
    if graph:
        return work_ms + count * rates.graph_node_ms
    return max(work_ms, count * rates.kernel_launch_ms)


def graph_gain(work_ms: float, layers: int, rates: Rates) -> float:
    """How many times faster a step gets when its graph is captured; below 1 where there is nothing to gain."""
    return launched_ms(work_ms, layers, rates, graph=False) / launched_ms(work_ms, layers, rates, graph=True)
