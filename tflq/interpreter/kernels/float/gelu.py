"""GELU of float32 and float16: x Phi(x), or its approximation by tanh.

Within 2 units in the last place of the input of TFLite's.

Source: TFLite kernels/internal/reference/gelu.h (on Eigen).
"""

from __future__ import annotations

from dataclasses import dataclass

from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.plain.elementwise import lower_unary
from tflq.interpreter.numerics import transcendental


@dataclass(frozen=True)
class Gelu:
    """Whether GELU is approximated by tanh."""

    approximate: bool


def lower(node: Node, operands: Operands) -> Gelu:
    """Read the option; errors as `lower_unary`."""
    lower_unary(operands, (DType.FLOAT32, DType.FLOAT16))
    return Gelu(node.attributes.boolean("approximate", False))


def run(params: Gelu, x: Array) -> tuple[Array, ...]:
    """Run GELU: T[S, *shape] -> T[S, *shape]."""
    return (transcendental.gelu(x.astype("float32"), params.approximate).astype(x.dtype),)
