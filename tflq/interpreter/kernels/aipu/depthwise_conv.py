"""DepthwiseConv: one filter a channel, always one multiplier a channel (docs/aipu.md, 3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.graph import Array, Node, Operands
from tflq.interpreter.accumulate import Depthwise, accumulate_depthwise, prepare_depthwise
from tflq.interpreter.kernels.aipu.filter import FilterIntegers, lower_filter
from tflq.interpreter.kernels.aipu.scales import magnitude_of
from tflq.interpreter.kernels.aipu.windows import window_of
from tflq.interpreter.kernels.aipu.written import Written


@dataclass(frozen=True, eq=False)
class DepthwiseIntegers:
    """The integers of one depthwise convolution.

    Attributes:
        filter: weights [O, KH, KW, 1], bias, M and N.
        prepared: the weights made ready for accumulation, and the window.
    """

    filter: FilterIntegers
    prepared: Depthwise

    @property
    def written(self) -> Written:
        """What stands in the IR."""
        return self.filter.written


def lower(node: Node, operands: Operands) -> DepthwiseIntegers:
    """Decide the integers of DepthwiseConv.

    Raises:
        UnsupportedError: as `lower_filter`.
        GraphError: shapes that contradict each other.
    """
    x = operands.input(0)
    found = lower_filter(node, operands)
    taps = np.moveaxis(found.weights[..., 0], 0, 2)
    window = window_of(node, x, operands.output())
    multiplier = node.attributes.integer("multiplier", 1)
    return DepthwiseIntegers(found, prepare_depthwise(taps, window, multiplier, magnitude_of(x)))


def run(integers: DepthwiseIntegers, x: Array, *_constants: Array) -> tuple[Array, ...]:
    """Run DepthwiseConv: codes [S, N, H, W, C] -> codes [S, N, OH, OW, C * multiplier]."""
    accumulators = accumulate_depthwise(integers.prepared, x, integers.filter.pad)
    return (integers.filter.finish(accumulators),)
