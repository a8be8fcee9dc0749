"""MAX_POOL_2D in TFLite's integer arithmetic: int8, uint8, int16 (docs/tflite.md).

y = clamp(max of the raw codes over the taps inside the image). Nothing is rescaled.

Source: TFLite kernels/pooling.cc, internal/reference/pooling.h, internal/reference/integer_ops/pooling.h.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.accumulate import Window, window_maxima
from tflq.interpreter.kernels.tflite.pool_clamp import pool_clamp
from tflq.interpreter.operands.windows import pool_window


@dataclass(frozen=True)
class MaxPool:
    """The integers of one MAX_POOL_2D.

    Attributes:
        window: kernel, stride, padding.
        minimum: smallest code after the fused activation.
        maximum: largest code.
        dtype: of input and output.
    """

    window: Window
    minimum: int
    maximum: int
    dtype: DType


def lower(node: Node, operands: Operands) -> MaxPool:
    """Decide the integers of MAX_POOL_2D.

    Raises:
        UnsupportedError: types that TFLite's kernel does not take.
        GraphError: an input that is no image, or a window that does not fit.
    """
    window, _ = pool_window(node, operands)
    return MaxPool(window, *pool_clamp(node, operands), operands.input(0).dtype)


def run(params: MaxPool, x: Array) -> tuple[Array, ...]:
    """Run MAX_POOL_2D: T[S, N, H, W, C] -> T[S, N, OH, OW, C]."""
    largest = window_maxima(params.window, x, params.dtype.minimum)
    return (np.clip(largest, params.minimum, params.maximum).astype(x.dtype),)
