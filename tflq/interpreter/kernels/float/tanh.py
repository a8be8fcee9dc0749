"""TANH of float32, float16 and bfloat16, computed in float64 and rounded to float32, the latter two from there again.

TFLite's is the host's tanhf, for which glibc states two units in the last place (7 % of its results are off by one): so
far apart the two are at most.

Source: TFLite kernels/activations.cc (TanhEval).
"""

from __future__ import annotations

from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.plain.elementwise import Elementwise, lower_unary
from tflq.interpreter.numerics import transcendental
from tflq.interpreter.numerics.bfloat16 import from_float32, to_float32

TYPES = (DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16)


def lower(node: Node, operands: Operands) -> Elementwise:  # noqa: ARG001
    """Check the types; errors as `lower_unary`."""
    return lower_unary(operands, TYPES)


def run(params: Elementwise, x: Array) -> tuple[Array, ...]:
    """Run it: T[S, *shape] -> T[S, *shape]."""
    return (from_float32(params.dtype, transcendental.tanh(to_float32(params.dtype, x))),)
