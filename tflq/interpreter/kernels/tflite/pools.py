"""AVERAGE_POOL_2D and MAX_POOL_2D in TFLite's integer arithmetic: int8, uint8, int16 (docs/rules/tflite/index.md).

Average: acc = sum of the quantized values over the n taps inside the image; y = clamp(trunc((acc +- n // 2) / n)), + if
acc > 0. Maximum: y = clamp(max of the quantized values over the taps inside the image). Nothing is rescaled: input and
output have the same scale and zero point.

Source: TFLite kernels/pooling.cc, internal/reference/pooling.h, internal/reference/integer_ops/pooling.h.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.arrays import Integers
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.layers.pooling import MaxPool, average_pool_kernel, run_max_pool
from tflq.interpreter.numerics.fixed_point import activation_range
from tflq.interpreter.operands.checks import EIGHT_BITS, is_quantized, per_tensor, require_type
from tflq.interpreter.operands.sliding_windows import Window
from tflq.interpreter.operands.windows import pool_window
from tflq.interpreter.registry import Kernel


@dataclass(frozen=True)
class Quotient:
    """The rule of an average.

    Attributes:
        minimum: smallest quantized value after the fused activation.
        maximum: largest one.
        dtype: Type of input and output.
    """

    minimum: int
    maximum: int
    dtype: DType

    def apply(self, sums: Array, counts: Integers | int) -> Array:
        """Return clamp(trunc((sum +- count // 2) / count)).

        The quotient is computed in float64: |sum| < 2^32 and n < 2^16, so a quotient that is no integer is at least 1/n
        away from one, far more than float64's error, and trunc returns the integer division's result.
        """
        total = sums.astype(np.float64)
        total += np.copysign(counts // 2, total)  # a sum of 0 stays below 1 in magnitude, whichever its sign
        total /= counts
        np.trunc(total, out=total)
        total.clip(self.minimum, self.maximum, out=total)
        return total.astype(self.dtype.storage)


def _find_window(node: Node, operands: Operands) -> Window:
    return pool_window(node, operands)[0]


def _find_average(node: Node, operands: Operands, taps: int, is_padded: bool) -> Quotient:  # noqa: ARG001
    return Quotient(*_clamp(node, operands))


def _lower_max(node: Node, operands: Operands) -> MaxPool:
    window, (low, high, dtype) = _find_window(node, operands), _clamp(node, operands)
    return MaxPool(window, dtype.minimum, bounds=(low, high))


def _clamp(node: Node, operands: Operands) -> tuple[int, int, DType]:
    """Return smallest and largest quantized value after the fused activation, and the type.

    Raises:
        UnsupportedError: types that TFLite's kernel does not take, or an unknown activation.
    """
    dtype = require_type(operands.input(0), (*EIGHT_BITS, DType.INT16))
    activation = node.attributes.text("fused_activation_function", "none")
    output = operands.output()
    if activation == "none" and not is_quantized(output):
        return dtype.minimum, dtype.maximum, dtype
    scale, zero_point = per_tensor(output)
    return *activation_range(activation, scale, zero_point, dtype.minimum, dtype.maximum), dtype


_SOURCE = "TFLite kernels/pooling.cc, internal/reference/integer_ops/pooling.h"
KERNELS = {
    "average_pool_2d": average_pool_kernel(_find_average,
        "the sum over the n taps inside the image by n, halves away from zero", _SOURCE, _find_window),
    "max_pool_2d": Kernel(_lower_max, run_max_pool, "the largest of the taps inside the image", _SOURCE),
}  # fmt: skip
