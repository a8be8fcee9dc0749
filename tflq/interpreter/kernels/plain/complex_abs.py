"""COMPLEX_ABS of complex numbers: the magnitude, computed in float64. Equal to TFLite bit for bit.

complex64 gives float32, complex128 gives float64. Source: TFLite kernels/complex_support.cc.
"""

from __future__ import annotations

import numpy as np

from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.plain.elementwise import Elementwise, lower_unary


def lower(node: Node, operands: Operands) -> Elementwise:  # noqa: ARG001
    """Check the types; errors as `lower_unary`."""
    result = DType.FLOAT64 if operands.input(0).dtype is DType.COMPLEX128 else DType.FLOAT32
    return lower_unary(operands, (DType.COMPLEX64, DType.COMPLEX128), result)


def run(params: Elementwise, x: Array) -> tuple[Array, ...]:  # noqa: ARG001
    """Run COMPLEX_ABS: complex[S, *shape] -> float[S, *shape]."""
    with np.errstate(all="ignore"):
        return (np.hypot(x.real.astype(np.float64), x.imag.astype(np.float64)).astype(x.real.dtype),)
