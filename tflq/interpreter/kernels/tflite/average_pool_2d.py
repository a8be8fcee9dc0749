"""AVERAGE_POOL_2D in TFLite's integer arithmetic: int8, uint8, int16 (docs/tflite.md).

acc = sum of the raw codes over the n taps inside the image; y = clamp(trunc((acc +- n // 2) / n)), + where acc > 0.
Nothing is rescaled: input and output have the same scale and zero point.

Source: TFLite kernels/pooling.cc, internal/reference/pooling.h, internal/reference/integer_ops/pooling.h.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.accumulate import Window, window_counts, window_sums
from tflq.interpreter.kernels.tflite.pool_clamp import pool_clamp
from tflq.interpreter.operands.windows import pool_window


@dataclass(frozen=True, eq=False)
class AveragePool:
    """The integers of one AVERAGE_POOL_2D.

    Attributes:
        window: kernel, stride, padding.
        counts: int64[OH, OW], taps inside the image.
        minimum: smallest code after the fused activation.
        maximum: largest code.
        dtype: of input and output.
    """

    window: Window
    counts: NDArray[np.int64]
    minimum: int
    maximum: int
    dtype: DType


def lower(node: Node, operands: Operands) -> AveragePool:
    """Decide the integers of AVERAGE_POOL_2D.

    Raises:
        UnsupportedError: types that TFLite's kernel does not take.
        GraphError: an input that is no image, or a window that does not fit.
    """
    window, (height, width) = pool_window(node, operands)
    minimum, maximum = pool_clamp(node, operands)
    return AveragePool(window, window_counts(window, (height, width)), minimum, maximum, operands.input(0).dtype)


def run(params: AveragePool, x: Array) -> tuple[Array, ...]:
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


def samples_last(params: AveragePool, operands: Operands) -> float | None:
    """Return 0 for windows that cover the image, whose sums are as fast along any axis; None for others."""
    image = operands.input(0).shape[1:3]
    return 0.0 if params.window.kernel == image else None
