"""DEQUANTIZE of reals: float16 is widened to float32; in a model's float view both sides are float32.

Source: TFLite kernels/dequantize.h.
"""

from __future__ import annotations

import numpy as np

from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.float.unary import Unary
from tflq.interpreter.operands.checks import require_type


def lower(node: Node, operands: Operands) -> Unary:  # noqa: ARG001
    """Check the types.

    Raises:
        UnsupportedError: the input is not float16 or float32, or the output is not float32.
    """
    require_type(operands.input(0), (DType.FLOAT16, DType.FLOAT32))
    require_type(operands.output(), (DType.FLOAT32,))
    return Unary()


def run(params: Unary, x: Array) -> tuple[Array, ...]:  # noqa: ARG001
    """Return the input as float32[S, *shape]."""
    return (x.astype(np.float32, copy=False),)
