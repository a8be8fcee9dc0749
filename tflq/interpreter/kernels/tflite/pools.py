"""AVERAGE_POOL_2D and MAX_POOL_2D in TFLite's integer arithmetic: int8, uint8, int16 (docs/tflite.md).

Average: acc = sum of the quantized values over the n taps inside the image; y = clamp(trunc((acc +- n // 2) / n)), +
where acc > 0. Maximum: y = clamp(max of the quantized values over the taps inside the image). Nothing is rescaled:
input and output have the same scale and zero point.

Source: TFLite kernels/pooling.cc, internal/reference/pooling.h, internal/reference/integer_ops/pooling.h.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.accumulate import Window, window_counts, window_maxima, window_sums
from tflq.interpreter.numerics.fixed_point import activation_range
from tflq.interpreter.operands.checks import EIGHT_BITS, is_quantised, per_tensor, require_type
from tflq.interpreter.operands.windows import pool_window
from tflq.interpreter.registry import Kernel


@dataclass(frozen=True)
class MaxPool:
    """The params of one MAX_POOL_2D.

    Attributes:
        window: kernel, stride, padding.
        minimum: smallest quantized value after the fused activation.
        maximum: largest one.
        dtype: of input and output.
    """

    window: Window
    minimum: int
    maximum: int
    dtype: DType


@dataclass(frozen=True, eq=False)
class AveragePool:
    """The params of one AVERAGE_POOL_2D.

    Attributes:
        window: kernel, stride, padding.
        counts: int64[OH, OW], taps inside the image.
        minimum: smallest quantized value after the fused activation.
        maximum: largest one.
        dtype: of input and output.
    """

    window: Window
    counts: NDArray[np.int64]
    minimum: int
    maximum: int
    dtype: DType


def _lower_average(node: Node, operands: Operands) -> AveragePool:
    """Decide the params of AVERAGE_POOL_2D.

    Raises:
        UnsupportedError: types that TFLite's kernel does not take, or an unknown activation.
        GraphError: an input that is no image, or a window that does not fit.
    """
    window, size = pool_window(node, operands)
    return AveragePool(window, window_counts(window, size), *_clamp(node, operands))


def _lower_max(node: Node, operands: Operands) -> MaxPool:
    """Decide the params of MAX_POOL_2D; raises as `_lower_average`."""
    return MaxPool(pool_window(node, operands)[0], *_clamp(node, operands))


def _clamp(node: Node, operands: Operands) -> tuple[int, int, DType]:
    """Return smallest and largest quantized value after the fused activation, and the type."""
    dtype = require_type(operands.input(0), (*EIGHT_BITS, DType.INT16))
    activation = node.attributes.text("fused_activation_function", "none")
    output = operands.output()
    if activation == "none" and not is_quantised(output):
        return dtype.minimum, dtype.maximum, dtype
    scale, zero_point = per_tensor(output)
    return *activation_range(activation, scale, zero_point, dtype.minimum, dtype.maximum), dtype


def _run_average(params: AveragePool, x: Array) -> tuple[Array, ...]:
    """Run AVERAGE_POOL_2D: T[S, N, H, W, C] -> T[S, N, OH, OW, C].

    The quotient is taken in float64: |acc| < 2^32 and n < 2^16, so a quotient that is no integer is at least 1/n away
    from one, far more than float64's error, and trunc gives the integer division's result.
    """
    magnitude = max(-params.dtype.minimum, params.dtype.maximum)
    total = window_sums(params.window, x, magnitude).astype(np.float64)
    counts = params.counts[:, :, None]
    total += np.copysign(counts // 2, total)  # a sum of 0 stays below 1 in magnitude, whichever its sign
    total /= counts
    np.trunc(total, out=total)
    total.clip(params.minimum, params.maximum, out=total)
    return (total.astype(params.dtype.storage),)


def _samples_last(params: object, operands: Operands) -> float | None:
    """Return 0 for windows that cover the image, whose sums are as fast along any axis; None for others."""
    image = operands.input(0).shape[1:3]
    return 0.0 if isinstance(params, AveragePool) and params.window.kernel == image else None


def _run_max(params: MaxPool, x: Array) -> tuple[Array, ...]:
    """Run MAX_POOL_2D: T[S, N, H, W, C] -> T[S, N, OH, OW, C]."""
    largest = window_maxima(params.window, x, params.dtype.minimum)
    return (np.clip(largest, params.minimum, params.maximum).astype(x.dtype),)


KERNELS = {
    "average_pool_2d": Kernel(
        _lower_average,
        _run_average,
        "the sum over the n taps inside the image by n, halves away from zero",
        "TFLite kernels/pooling.cc, internal/reference/integer_ops/pooling.h",
        samples_last=_samples_last,
    ),
    "max_pool_2d": Kernel(
        _lower_max,
        _run_max,
        "the largest of the taps inside the image",
        "TFLite kernels/pooling.cc, internal/reference/integer_ops/pooling.h",
    ),
}
