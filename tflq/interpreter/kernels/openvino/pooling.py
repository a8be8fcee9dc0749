"""Pools and means of codes: exact sums, real = (sum / taps - Z) * S in float64, then levels.

The padding is not counted. MAX_POOL_2D takes the largest quantized value: levels keep their order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.arrays import Integers
from tflq.errors import UnsupportedError
from tflq.graph import Affine, Array, Node, Operands
from tflq.interpreter.kernels.openvino.levels import CODES, Stored
from tflq.interpreter.layers.pooling import MaxPool, average_pool_kernel, mean_kernel, run_max_pool
from tflq.interpreter.operands.checks import lower_reduction, require_type
from tflq.interpreter.operands.windows import window_of_node
from tflq.interpreter.registry import Kernel


@dataclass(frozen=True, eq=False)
class AverageParams:
    """Rule from sums of quantized values to means.

    Attributes:
        source: Quantization of the input.
        stored: Rule from reals to the output.
    """

    source: Affine
    stored: Stored

    def apply(self, sums: Array, counts: Integers | int) -> Array:
        """Return quantized values or float32 for exact sums [..., C] of `counts` quantized values."""
        shifted = sums.astype(np.float64) - counts * self.source.zero_point
        real = shifted * self.source.scale.astype(np.float64) / counts
        return self.stored.apply(real)


def lower_average(node: Node, operands: Operands, taps: int, is_padded: bool) -> AverageParams:  # noqa: ARG001
    """Decide the params.

    Raises:
        UnsupportedError: an input that is not quantized values.
    """
    require_type(operands.input(0), CODES)
    return AverageParams(operands.input(0).affine, Stored.of_output(node, operands.output()))


def find_mean(node: Node, operands: Operands, taps: int, is_padded: bool) -> AverageParams:
    """Decide the params of MEAN.

    Raises:
        UnsupportedError: as `lower_average`; per-channel quantized values averaged over their channels; nothing to
            average.
    """
    x, average = operands.input(0), lower_average(node, operands, taps, is_padded)
    if average.source.is_per_axis and len(x.shape) - 1 in lower_reduction(node, operands).axes:
        raise UnsupportedError("the mean of channels that have ranges of their own")
    if taps < 1:
        raise UnsupportedError(f"the mean of no element: shape {x.shape}")
    return average


def lower_max_pool(node: Node, operands: Operands) -> MaxPool:
    """Decide the window of MAX_POOL_2D.

    Raises:
        UnsupportedError: no quantized values, a fused activation, or an output with another range.
    """
    x, output = operands.input(0), operands.output()
    require_type(x, CODES)
    if output.quantization != x.quantization or node.attributes.text("fused_activation_function", "none") != "none":
        raise UnsupportedError("a max pool on quantized values keeps its input's range and has no activation")
    return MaxPool(window_of_node(node, x.shape), x.dtype.minimum)


_RULE, _SOURCE = "level((sum / n - Z) * S), in float64", "docs/rules/openvino.md#levels-as-integers"
KERNELS = {
    "average_pool_2d": average_pool_kernel(lower_average, f"{_RULE}; the padding is not counted", _SOURCE),
    "max_pool_2d": Kernel(lower_max_pool, run_max_pool, "the largest quantized value", _SOURCE),
    "mean": mean_kernel(find_mean, _RULE, _SOURCE),
}
