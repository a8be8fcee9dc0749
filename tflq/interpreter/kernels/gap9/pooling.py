"""Pools, means, sums and maxima in GAP9's arithmetic (docs/rules/gap9/operators.md#add-mul-pools).

AVERAGE_POOL_2D has a truncated reciprocal and counts the padding, MAX_POOL_2D lets the padding's zero point take part.
MEAN, SUM and REDUCE_MAX reduce height and width: global pools of int8, input and output symmetric.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from tflq.arrays import Integers
from tflq.graph import Array, Node, Operands
from tflq.interpreter.accumulate import window_counts
from tflq.interpreter.kernels.gap9.mul_bias import MulBias, mul_bias
from tflq.interpreter.kernels.gap9.rounding import Stored, wrapped_norm
from tflq.interpreter.layers.pooling import MaxPool, average_pool_kernel, mean_kernel, run_max_pool
from tflq.interpreter.numerics.fixed_point import norm
from tflq.interpreter.operands.checks import Reduction, lower_reduction, shape_of_result
from tflq.interpreter.operands.windows import window_of_node
from tflq.interpreter.registry import Kernel

_FRACTION_BITS = 7


@dataclass(frozen=True, eq=False)
class Reciprocal:
    """The params of one average pool.

    Attributes:
        factor: floor(65536 / taps), so averages are up to 0.05 % low.
        zero_point: Padding value Z_x, counted as a tap.
        taps: Number of elements in a full window.
        stored: smallest and largest quantized value, type of the output.
        wraps: whether the product keeps its low 32 bits, as NNTool's does with 16-bit features.
    """

    factor: int
    zero_point: int
    taps: int
    stored: Stored
    wraps: bool = False

    def apply(self, sums: Array, counts: Integers | int) -> Array:
        """clip(norm((sum + Z * (taps - count)) * factor, 16))."""
        total = sums.astype(np.int64)
        total += self.zero_point * (self.taps - counts)
        scaled = (wrapped_norm if self.wraps else norm)(total * self.factor, 16)
        return self.stored.clip(scaled).astype(self.stored.dtype)


@dataclass(frozen=True, eq=False)
class RescaledSum:
    """The params of one mean or sum.

    Attributes:
        fraction_bits: f, 7 for a mean; None for a sum, which is not divided.
        mul_bias: M * 2^-N about S_x / (S_y * 2^f).
        stored: smallest and largest quantized value, type of the output.
    """

    fraction_bits: int | None
    mul_bias: MulBias
    stored: Stored

    def apply(self, sums: Array, counts: Integers | int) -> Array:
        """clip(norm(trunc((sum << f) / n) * M, N)); the division truncates toward zero."""
        total = sums.astype(np.int64)
        if self.fraction_bits is not None:
            shifted = total << self.fraction_bits
            total = np.sign(shifted) * (np.abs(shifted) // counts)
        return self.stored.clip(self.mul_bias.times(total)).astype(self.stored.dtype)


def find_reciprocal(node: Node, operands: Operands, taps: int, is_padded: bool) -> Reciprocal:  # noqa: ARG001
    """Decide the params of AVERAGE_POOL_2D; input and output share scale and zero point."""
    x = operands.input(0)
    wraps = node.attributes.text("numerics", "exact") == "nntool"
    return Reciprocal(65536 // taps, int(x.affine.zero_point[0]), taps, Stored.of_output(x), wraps)


def find_rescaled_sum(
    node: Node,
    operands: Operands,
    taps: int,  # noqa: ARG001
    is_padded: bool,  # noqa: ARG001
    *,
    fraction_bits: int | None,
) -> RescaledSum:
    """Decide the params of MEAN or SUM; with numerics "nntool" a SUM has a mean's M, N: 1/128 of it.

    Raises as `mul_bias`.
    """
    x, output = operands.input(0), operands.output()
    as_nntool = node.attributes.text("numerics", "exact") == "nntool"
    unit = 1 << (_FRACTION_BITS if as_nntool else fraction_bits or 0)
    ratio = x.affine.scale.astype(np.float64) / (output.affine.scale.astype(np.float64) * unit)
    return RescaledSum(fraction_bits, mul_bias(ratio), Stored.of_output(output))


def lower_max_pool(node: Node, operands: Operands) -> MaxPool:
    """Decide the params of MAX_POOL_2D: if a window leaves the image the zero point is the least result."""
    x = operands.input(0)
    window = window_of_node(node, x.shape)
    partial_ = window_counts(window, (x.shape[1], x.shape[2])) < window.taps
    least = x.affine.minimum_code
    if not partial_.any():
        return MaxPool(window, least)
    floor = np.where(partial_, int(x.affine.zero_point[0]), least)[:, :, None].astype(x.dtype.storage)
    return MaxPool(window, least, floor)


def run_reduce_max(params: Reduction, x: Array, *_axes: Array) -> tuple[Array, ...]:
    """Run REDUCE_MAX: [S, *shape] -> [S, *shape without the axes, or with 1 there]."""
    return (x.max(axis=tuple(a + 1 for a in params.axes)).reshape(shape_of_result(params, x)),)


_SOURCE = "docs/rules/gap9/operators.md#add-mul-pools"
_mean, _sum = (partial(find_rescaled_sum, fraction_bits=bits) for bits in (_FRACTION_BITS, None))
KERNELS = {
    "average_pool_2d": average_pool_kernel(find_reciprocal, "y = clip(norm(sum * (65536 // taps), 16))", _SOURCE),
    "max_pool_2d": Kernel(lower_max_pool, run_max_pool, "the largest quantized value, padding holding Z", _SOURCE),
    "mean": mean_kernel(_mean, "y = clip(norm(trunc((sum << 7) / n) * M, N))", _SOURCE),
    "sum": mean_kernel(_sum, "y = clip(norm(sum * M, N))", _SOURCE),
    "reduce_max": Kernel(lower_reduction, run_reduce_max, "the largest quantized value", _SOURCE),
}
