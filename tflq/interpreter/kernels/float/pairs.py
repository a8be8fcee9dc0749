"""ADD, SUB, MUL, DIV, SQUARED_DIFFERENCE and PRELU of reals, element by element, shapes broadcast.

T[S or 1, *shape] twice -> T[S, *shape]; one IEEE operation each in the tensor's type. Equal to TFLite bit for bit.

DIV: float32: x / y and a fused activation. Without an activation results are clamped to the finite numbers, so that 1 /
0 is the largest one; 0 / 0 is NaN. Source: TFLite kernels/div.cc, internal/reference/div.h.
SQUARED_DIFFERENCE: float32: d = f32(x - y); f32(d * d). Source: TFLite kernels/squared_difference.cc.
PRELU: float32: x where x >= 0, else f32(x * alpha), alpha broadcast. Source: TFLite kernels/activations.cc
(ApplyPrelu).
"""

from __future__ import annotations

from functools import partial

import numpy as np

from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.plain.binary import PlainBinary, clamp_in_place, lower_plain, plain_pair
from tflq.interpreter.kernels.plain.elementwise import Elementwise, binary, lower_binary
from tflq.interpreter.operands.checks import require_alpha_fits
from tflq.interpreter.registry import Kernel
from tflq.interpreter.samples import align

_NUMBERS = (DType.FLOAT32, DType.FLOAT16, DType.INT16, DType.INT32, DType.INT64)


def _run_div(params: PlainBinary, first: Array, second: Array) -> tuple[Array, ...]:
    with np.errstate(all="ignore"):
        quotient = np.asarray(np.divide(*align(first, second)))
    return (clamp_in_place(quotient, params.minimum, params.maximum),)


def _squared_difference(_: DType, x: Array, y: Array) -> Array:
    difference = np.subtract(x, y)
    return np.asarray(np.multiply(difference, difference))


def _lower_prelu(node: Node, operands: Operands) -> Elementwise:  # noqa: ARG001
    require_alpha_fits(operands)
    return lower_binary(operands, (DType.FLOAT32,))


def _run_prelu(params: Elementwise, x: Array, alpha: Array) -> tuple[Array, ...]:  # noqa: ARG001
    x, alpha = align(x, alpha)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        return (np.where(np.greater_equal(x, 0), x, np.multiply(x, alpha)),)


KERNELS = {
    "add": plain_pair("add", "x_1 + x_2 and a fused activation", _NUMBERS),
    "sub": plain_pair("sub", "x_1 - x_2 and a fused activation", (DType.FLOAT32, DType.INT32, DType.INT64)),
    "mul": plain_pair("mul", "x_1 * x_2 and a fused activation", (*_NUMBERS, DType.UINT32)),
    "div": Kernel(partial(lower_plain, "div", allowed=(DType.FLOAT32,)), _run_div),
    "squared_difference": binary((DType.FLOAT32,), _squared_difference),
    "prelu": Kernel(_lower_prelu, _run_prelu),
}
