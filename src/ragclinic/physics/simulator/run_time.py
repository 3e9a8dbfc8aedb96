"""The time of a run of decode steps, as a straight line: each step reads a little more than the one before."""

import math
from typing import NamedTuple

from ragclinic.physics.roofline import StepCost
from ragclinic.physics.roofline.launch import kernels

ENDLESS = 1 << 60


class Line(NamedTuple):
    """The first step takes `first_ms`, each further one `slope_ms` more, for up to `steps` steps."""

    first_ms: float
    slope_ms: float
    steps: int

    def total_ms(self, steps: int) -> float:
        """All of so many steps."""
        return steps * self.first_ms + self.slope_ms * steps * (steps - 1) / 2


def run_line(cost: StepCost, batch: int, context: int, window_context: int, inside_window: int) -> Line:
    """The line for a batch whose contexts sum to `context`, of which `inside_window` still grow for the window.

    Without a graph the host's launching is a floor under the line; the run then ends where the line rises above.
    """
    work = cost.base_ms(batch, batch, batch)
    work += context * cost.full.decode_token + window_context * cost.window.decode_token
    slope = batch * cost.full.decode_token + inside_window * cost.window.decode_token
    rates, pipeline = cost.rates, cost.pipeline
    count = kernels(cost.layers)
    if cost.graph:
        return Line(pipeline * (work + count * rates.graph_node_ms) + rates.host_ms, pipeline * slope, ENDLESS)
    floor = count * rates.kernel_launch_ms
    if work >= floor:
        return Line(pipeline * work + rates.host_ms, pipeline * slope, ENDLESS)
    below = math.ceil((floor - work) / slope) if slope else ENDLESS
    return Line(pipeline * floor + rates.host_ms, 0.0, max(1, below))


def steps_within(line: Line, time_ms: float) -> int:
    """How many steps begin before `time_ms` have passed, at least one."""
    if time_ms == math.inf:
        return ENDLESS
    half = line.slope_ms / 2
    if half <= 0:
        steps = time_ms / line.first_ms
    else:
        linear = line.first_ms - half
        steps = (math.sqrt(linear * linear + 4 * half * max(0.0, time_ms)) - linear) / (2 * half)
    return max(1, math.ceil(steps - 1e-9))
