"""PRELU of float32: x where x >= 0, else f32(x * alpha), alpha broadcast. Equal to TFLite bit for bit.

Source: TFLite kernels/activations.cc (ApplyPrelu).
"""

from __future__ import annotations

import numpy as np

from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.plain.elementwise import Elementwise, lower_binary
from tflq.interpreter.operands.prelu import require_alpha_fits
from tflq.interpreter.samples import align


def lower(node: Node, operands: Operands) -> Elementwise:  # noqa: ARG001
    """Check the operands; errors as `lower_binary` and `require_alpha_fits`."""
    require_alpha_fits(operands)
    return lower_binary(operands, (DType.FLOAT32,))


def run(params: Elementwise, x: Array, alpha: Array) -> tuple[Array, ...]:  # noqa: ARG001
    """Run PRELU: float32[S, *shape], alpha [S or 1, ...] -> float32[S, *shape]."""
    x, alpha = align(x, alpha)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        return (np.where(np.greater_equal(x, 0), x, np.multiply(x, alpha)),)
