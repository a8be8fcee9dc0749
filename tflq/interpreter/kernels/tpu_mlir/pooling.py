"""Pools and means: averages in integers in the symmetric mode, in float32 in the asymmetric one.

Source: docs/rules/tpu_mlir_operators.md#averages.

symmetric:  y = sat(up(sum * m, s)), 8-bit m about Sx / (Sy * k)
asymmetric: y = sat(rha(sum * f32(Sx / (Sy * k)) + f32(Zy - (Sx / Sy) * Zx)))

k taps of the full window; with n < k taps inside the image sum * k / n replaces the sum, rounded half away in the
symmetric mode; if the input has a zero point, sum + (k - n) * Zx: the padding counts as 0 there. The manual subtracts
the asymmetric offset, which is a sign error; its variant keeps it. MEAN is an average pool over the whole image.
MAX_POOL_2D takes the largest raw quantized value inside the image; its input and output share one type.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tflq.arrays import Integers
from tflq.errors import UnsupportedError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.tpu_mlir.multiplier import Multiplier, find_multiplier, is_manual, saturate, shift_half_up
from tflq.interpreter.layers.pooling import MaxPool, average_pool_kernel, mean_kernel, run_max_pool
from tflq.interpreter.numerics.fixed_point import round_half_away
from tflq.interpreter.operands.checks import lower_reduction
from tflq.interpreter.operands.windows import pool_window
from tflq.interpreter.registry import Kernel

MULTIPLIER_BITS = 8


@dataclass(frozen=True, eq=False)
class AverageParams:
    """The params of one average.

    Attributes:
        taps: k, of the full window.
        rescale: m and s; None in the asymmetric mode.
        scale: float32 of the asymmetric mode.
        offset: float32 of the asymmetric mode.
        dtype: Storage type of the output.
        floor: least result: Zy if a rectifier is fused.
        padding: Zx, the value of taps outside the image; 0 if they do not count.
    """

    taps: int
    rescale: Multiplier | None
    scale: np.float32
    offset: np.float32
    dtype: DType
    floor: int
    padding: int = 0

    def apply(self, sums: Array, counts: Integers | int) -> Array:
        """Return quantized values of exact sums of `counts` elements inside the image."""
        exact = sums.astype(np.float64)
        inside = np.asarray(counts)
        total = exact + (self.taps - inside) * self.padding if self.padding else exact * self.taps / inside
        if self.rescale is not None:
            whole = round_half_away(total).astype(np.int64)
            scaled = shift_half_up(whole * self.rescale.multiplier[0], self.rescale.shift[0])
            return saturate(np.maximum(scaled, self.floor), self.dtype)
        real = total.astype(np.float32) * self.scale + self.offset
        return saturate(np.maximum(round_half_away(real), self.floor), self.dtype)


def lower_average(node: Node, operands: Operands, taps: int, is_padded: bool) -> AverageParams:  # noqa: ARG001
    """Decide the params of an average over `taps` elements.

    Raises:
        UnsupportedError: a ratio of scales without multiplier.
    """
    x, output = operands.input(0).affine, operands.output()
    fused = node.attributes.text("fused_activation_function", "none") != "none"
    y = output.affine
    floor = int(y.zero_point[0]) if fused else output.dtype.minimum
    ratio = float(x.scale[0]) / float(y.scale[0])
    z_x, z_y = int(x.zero_point[0]), int(y.zero_point[0])
    if not node.attributes.boolean("asymmetric"):
        multiplier = find_multiplier(ratio / taps, MULTIPLIER_BITS)
        return AverageParams(taps, multiplier, np.float32(0), np.float32(0), output.dtype, floor)
    offset = z_y - ratio * z_x
    sign = -1 if is_manual(node) else 1
    return AverageParams(taps, None, np.float32(ratio / taps), np.float32(sign * offset), output.dtype, floor, z_x)


@dataclass(frozen=True, eq=False)
class HalfAverage:
    """An average in float16: f16(sum * f16(1 / n)), the sum in float32.

    Attributes:
        factor: 1 / n in float16.
    """

    factor: np.float16

    def apply(self, sums: Array, counts: Integers | int) -> Array:  # noqa: ARG002 - as `Average`
        """Return the averages of exact sums."""
        with np.errstate(over="ignore"):
            return np.asarray(sums.astype(np.float32) * np.float32(self.factor)).astype(np.float16)


def find_mean(node: Node, operands: Operands, taps: int, is_padded: bool) -> AverageParams | HalfAverage:
    """Decide the params of MEAN.

    Raises:
        UnsupportedError: in integers, other axes than 1 and 2 of a tensor of rank 4; else as `lower_average`.
    """
    if operands.output().dtype is DType.FLOAT16:
        return HalfAverage(np.float16(1.0 / taps))
    shape = operands.input(0).shape
    axes = sorted(int(a) % len(shape) for a in operands.constant(1).reshape(-1))
    if len(shape) != 4 or axes != [1, 2]:
        raise UnsupportedError(f"mean over axes {axes} of shape {shape}; known are axes 1 and 2 of rank 4")
    return lower_average(node, operands, taps, is_padded)


def lower_max_pool(node: Node, operands: Operands) -> MaxPool:
    """Decide the window; a fused rectifier is max(q, 0) of the raw value. Raises as `pool_window`."""
    dtype = operands.input(0).dtype
    fused = node.attributes.text("fused_activation_function", "none") != "none"
    bounds = (0, dtype.maximum) if fused else None
    return MaxPool(pool_window(_without(node), operands)[0], dtype.minimum, bounds=bounds)


def _without(node: Node) -> Node:
    return replace(node, attributes=node.attributes.updated(fused_activation_function="none"))


@dataclass(frozen=True, eq=False)
class MaximumParams:
    """The params of one REDUCE_MAX.

    Attributes:
        axes: Axes of the samples' arrays.
        keep_dims: whether they stay, with length 1.
    """

    axes: tuple[int, ...]
    keep_dims: bool


def lower_maximum(node: Node, operands: Operands) -> MaximumParams:
    """Decide the axes; raises as `lower_reduction`."""
    reduction = lower_reduction(node, operands)
    return MaximumParams(tuple(axis + 1 for axis in reduction.axes), reduction.keep_dims)


def run_maximum(params: MaximumParams, x: Array, *_axes: Array) -> tuple[Array, ...]:
    """Run REDUCE_MAX: [S, *shape] -> [S, *shape without the axes, or with 1 there]."""
    return (x.max(axis=params.axes, keepdims=params.keep_dims),)


_RULE, _SOURCE = (
    "y = sat(up(sum * m, s)), asymmetric y = sat(rha(sum * f + c))",
    "docs/rules/tpu_mlir_operators.md#averages",
)
KERNELS = {
    "average_pool_2d": average_pool_kernel(lower_average, f"{_RULE}; the padding is not counted", _SOURCE),
    "max_pool_2d": Kernel(
        lower_max_pool,
        run_max_pool,
        "the largest value inside the image",
        "docs/rules/tpu_mlir.md#ranges-that-are-unified-first",
    ),
    "reduce_max": Kernel(
        lower_maximum, run_maximum, "the largest value", "docs/rules/tpu_mlir.md#ranges-that-are-unified-first"
    ),
    "mean": mean_kernel(find_mean, f"{_RULE}, over height and width", _SOURCE),
}
