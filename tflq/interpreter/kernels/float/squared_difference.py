"""SQUARED_DIFFERENCE of float32: d = f32(x - y); f32(d * d). Equal to TFLite bit for bit.

Source: TFLite kernels/squared_difference.cc.
"""

from __future__ import annotations

import numpy as np

from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.plain.elementwise import Elementwise, lower_binary
from tflq.interpreter.samples import align


def lower(node: Node, operands: Operands) -> Elementwise:  # noqa: ARG001
    """Check the operands; errors as `lower_binary`."""
    return lower_binary(operands, (DType.FLOAT32,))


def run(params: Elementwise, first: Array, second: Array) -> tuple[Array, ...]:  # noqa: ARG001
    """Run SQUARED_DIFFERENCE: float32[S or 1, *shape] twice, shapes broadcast -> float32[S, *shape]."""
    with np.errstate(all="ignore"):
        difference = np.subtract(*align(first, second))
        return (np.asarray(np.multiply(difference, difference)),)
