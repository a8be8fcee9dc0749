"""LOG of float32: ln(x), computed in float64 and rounded once; within 1 unit in the last place of TFLite's.

Source: TFLite kernels/elementwise.cc (the host's logf).
"""

from __future__ import annotations

from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.plain.elementwise import Elementwise, lower_unary
from tflq.interpreter.numerics import transcendental


def lower(node: Node, operands: Operands) -> Elementwise:  # noqa: ARG001
    """Check the types; errors as `lower_unary`."""
    return lower_unary(operands, (DType.FLOAT32,))


def run(params: Elementwise, x: Array) -> tuple[Array, ...]:  # noqa: ARG001
    """Run LOG: float32[S, *shape] -> float32[S, *shape]."""
    return (transcendental.log(x.astype("float32")),)
