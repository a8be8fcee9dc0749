"""MAX_POOL_2D of float32: the largest value over the taps inside the image, in the order (ky, kx).

It starts at the smallest finite number and takes x where max < x: so NaN never wins, and of 0.0 and -0.0 the first
stays. Equal to TFLite bit for bit. Source: TFLite kernels/pooling.cc, internal/reference/pooling.h.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.accumulate import Window
from tflq.interpreter.accumulate.image import padded, patches
from tflq.interpreter.accumulate.sequential import Floats
from tflq.interpreter.kernels.float.convolution import LARGEST, float_bounds
from tflq.interpreter.kernels.plain.binary import clamp_in_place
from tflq.interpreter.operands.checks import require_type
from tflq.interpreter.operands.windows import pool_window


@dataclass(frozen=True)
class FloatMaxPool:
    """What MAX_POOL_2D of float32 needs.

    Attributes:
        window: kernel, stride, padding.
        minimum: lower bound of the fused activation; without one the smallest finite number.
        maximum: upper bound.
    """

    window: Window
    minimum: np.float32
    maximum: np.float32


def lower(node: Node, operands: Operands) -> FloatMaxPool:
    """Decide window and bounds.

    Raises:
        UnsupportedError: a type other than float32.
        GraphError: an input that is no image, or a window that does not fit.
    """
    require_type(operands.input(0), (DType.FLOAT32,))
    return FloatMaxPool(pool_window(node, operands)[0], *float_bounds(node))


def run(params: FloatMaxPool, x: Floats) -> tuple[Array, ...]:
    """Run it: float32[S, N, H, W, C] -> float32[S, N, OH, OW, C]."""
    window = params.window
    output = window.output_size((x.shape[2], x.shape[3]))
    seen = patches(padded(x.reshape(-1, *x.shape[2:]), window, -LARGEST, x.dtype), window, output)
    largest = np.full((seen.shape[0], *output, x.shape[4]), -LARGEST, np.float32)
    for ky in range(window.kernel[0]):
        for kx in range(window.kernel[1]):
            tap = seen[:, :, :, ky, kx]
            np.copyto(largest, tap, where=np.greater(tap, largest))
    clamped = clamp_in_place(largest, params.minimum, params.maximum)
    return (clamped.reshape(*x.shape[:2], *output, x.shape[4]),)
