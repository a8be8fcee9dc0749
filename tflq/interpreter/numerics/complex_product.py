"""MUL of complex64: the product of two complex numbers, part by part in float32, without an activation.

real = a_r b_r - a_i b_i, imag = a_r b_i + a_i b_r, each operation rounded to float32. Where both parts come out NaN the
C++ library looks for infinities among the factors; tflq does not, so infinite factors may give NaN here.

Source: TFLite kernels/mul.cc and the complex multiplication of C (ISO C, Annex G).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import UnsupportedError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.operands.checks import require_broadcast, require_same_type
from tflq.interpreter.samples import align


@dataclass(frozen=True)
class ComplexProduct:
    """Nothing is left to decide."""


def lower_complex(node: Node, operands: Operands) -> ComplexProduct:
    """Check the operands.

    Raises:
        UnsupportedError: types that differ, or a fused activation.
        GraphError: shapes that do not broadcast.
    """
    first, second = operands.input(0), operands.input(1)
    require_same_type(first, second, operands.output())
    require_broadcast(first, second)
    activation = node.attributes.text("fused_activation_function", "none")
    if activation != "none":
        raise UnsupportedError(f"fused activation '{activation}'; complex64 takes none")
    return ComplexProduct()


def run_complex(first: Array, second: Array) -> tuple[Array, ...]:
    """Multiply: complex64[S or 1, *shape] twice, shapes broadcast -> complex64[S, *shape]."""
    x, y = (v.astype(np.complex64, copy=False) for v in align(first, second))
    with np.errstate(over="ignore", invalid="ignore"):
        real = np.asarray(x.real * y.real) - np.asarray(x.imag * y.imag)
        imag = np.asarray(x.real * y.imag) + np.asarray(x.imag * y.real)
    product = np.empty(real.shape, np.complex64)
    product.real, product.imag = real, imag
    return (product,)
