"""RESIZE_BILINEAR of float32: the blend of tflq.interpreter.numerics.bilinear."""

from __future__ import annotations

import numpy as np

from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.numerics.bilinear import ResizeBilinear, blend_float, lower_float
from tflq.interpreter.operands.movable import require_movable
from tflq.interpreter.registry import Kernel


def lower(node: Node, operands: Operands) -> ResizeBilinear:
    """Decide positions.

    Raises:
        GraphError: another rank than 4, a size below 1 or computed at run time.
        UnsupportedError: another type than float32, or both options at once.
    """
    require_movable(node, operands.input(0), operands.output(), (DType.FLOAT32,))
    return lower_float(node, operands)


def run(params: ResizeBilinear, x: Array, *_size: Array) -> tuple[Array, ...]:
    """Run RESIZE_BILINEAR: float32[S, N, H, W, C] -> float32[S, N, rows, columns, C]."""
    blended = blend_float(params, x)
    blended += np.float32(0)  # TFLite's rounding offset, which of floats only makes -0 to 0
    return (blended,)


KERNELS = {
    "resize_bilinear": Kernel(lower, run,
        "RESIZE_BILINEAR of float32: the blend of tflq.interpreter.numerics.bilinear",
        "TFLite kernels/resize_bilinear.cc and internal/reference/resize_bilinear.h (ResizeBilinear)"),
}  # fmt: skip
