"""REAL, IMAG and COMPLEX_ABS: complex[S, *shape] -> float[S, *shape], float32 of complex64, float64 of complex128."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.plain.elementwise import Elementwise, lower_unary
from tflq.interpreter.registry import Kernel


def _part(summary: str, function: Callable[[Array], Array]) -> Kernel:
    def lower(node: Node, operands: Operands) -> Elementwise:  # noqa: ARG001
        result = DType.FLOAT64 if operands.input(0).dtype is DType.COMPLEX128 else DType.FLOAT32
        return lower_unary(operands, (DType.COMPLEX64, DType.COMPLEX128), result)

    def run(params: Elementwise, x: Array) -> tuple[Array, ...]:  # noqa: ARG001
        with np.errstate(all="ignore"):
            return (function(x),)

    return Kernel(lower, run, summary, "TFLite kernels/complex_support.cc")


KERNELS = {
    "real": _part("the real part", lambda x: np.ascontiguousarray(x.real)),
    "imag": _part("the imaginary part", lambda x: np.ascontiguousarray(x.imag)),
    "complex_abs": _part(
        "the magnitude, computed in float64. Equal to TFLite bit for bit",
        lambda x: np.hypot(x.real.astype(np.float64), x.imag.astype(np.float64)).astype(x.real.dtype),
    ),
}
