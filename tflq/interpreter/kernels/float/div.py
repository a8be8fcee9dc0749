"""DIV of float32: x / y, elementwise with broadcasting and a fused activation. Equal to TFLite bit for bit.

Without an activation results are clamped to the finite numbers, so that 1 / 0 is the largest one; 0 / 0 is NaN.
Source: TFLite kernels/div.cc, internal/reference/div.h.
"""

from __future__ import annotations

import numpy as np

from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.plain.binary import PlainBinary, clamp_in_place, lower_plain
from tflq.interpreter.samples import align


def lower(node: Node, operands: Operands) -> PlainBinary:
    """Check the operands and decide the bounds; errors as `lower_plain`."""
    return lower_plain("div", node, operands, (DType.FLOAT32,))


def run(params: PlainBinary, first: Array, second: Array) -> tuple[Array, ...]:
    """Run DIV: float32[S or 1, *shape] twice, shapes broadcast -> float32[S, *shape]."""
    with np.errstate(all="ignore"):
        quotient = np.asarray(np.divide(*align(first, second)))
    return (clamp_in_place(quotient, params.minimum, params.maximum),)
