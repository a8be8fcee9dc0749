"""Functions of one tensor of plain numbers, element by element: T[S, *shape] -> T[S, *shape].

COMPLEX_ABS, IMAG and REAL: complex[S, *shape] -> float[S, *shape], float32 of complex64, float64 of complex128.

CEIL: the smallest whole number that is not below x. Equal to TFLite bit for bit. Source: TFLite kernels/ceil.cc.
COMPLEX_ABS: the magnitude, computed in float64. Equal to TFLite bit for bit. Source: TFLite kernels/complex_support.cc.
COS: cos(x), computed in float64 and rounded once; within 1 unit in the last place of TFLite's (the host's cosf).
Source: TFLite kernels/elementwise.cc.
FLOOR: the largest whole number that is not above x. Equal to TFLite bit for bit. Source: TFLite kernels/floor.cc.
IMAG: the imaginary part. Source: TFLite kernels/complex_support.cc.
LOGICAL_NOT: not x. Source: TFLite kernels/elementwise.cc.
NEG: -x. Quantized values are negated as they are, scales and zero points do not enter; the lowest integer stays.
Source: TFLite kernels/neg.cc.
REAL: the real part. Source: TFLite kernels/complex_support.cc.
ROUND: x rounded to a whole number, ties to even; what rounds up to 0 is +0. Equal to TFLite bit for bit. Source: TFLite
kernels/round.cc, internal/reference/round.h; in TFLite's optimised set only.
SIGN: 1 above 0, -1 below, 0 at 0 and -0; NaN stays. Source: TFLite kernels/sign.cc.
SIN: sin(x), computed in float64 and rounded once; within 1 unit in the last place of TFLite's (the host's sinf).
Source: TFLite kernels/elementwise.cc.
SQUARE: f32(x * x). Equal to TFLite bit for bit. Source: TFLite kernels/elementwise.cc.
ZEROS_LIKE: zeros in the shape of x. Source: TFLite kernels/zeros_like.cc.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.plain.elementwise import Elementwise, lower_unary, unary
from tflq.interpreter.numerics import transcendental
from tflq.interpreter.numerics.bfloat16 import by_number, narrow, numbers
from tflq.interpreter.registry import Kernel

_FLOATS = (DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16)
_INTEGERS = (DType.INT8, DType.INT16, DType.INT32, DType.INT64)


def _negative(dtype: DType, x: Array) -> Array:
    if dtype is DType.BFLOAT16:
        return np.asarray(np.bitwise_xor(x, np.uint16(0x8000)))
    return np.asarray(np.negative(x))


def _rounded(dtype: DType, x: Array) -> Array:
    value = numbers(dtype, x)
    rounded = np.asarray(np.rint(value))
    rounded[(rounded == 0) & np.less(value, 0)] = 0
    return narrow(rounded) if dtype is DType.BFLOAT16 else rounded


def _circular(function: Callable[[NDArray[np.float32]], Array]) -> Kernel:
    return unary((DType.FLOAT32, DType.FLOAT16), lambda _, x: function(x.astype(np.float32)).astype(x.dtype))


def _part(function: Callable[[Array], Array]) -> Kernel:
    def lower(node: Node, operands: Operands) -> Elementwise:  # noqa: ARG001
        result = DType.FLOAT64 if operands.input(0).dtype is DType.COMPLEX128 else DType.FLOAT32
        return lower_unary(operands, (DType.COMPLEX64, DType.COMPLEX128), result)

    def run(params: Elementwise, x: Array) -> tuple[Array, ...]:  # noqa: ARG001
        with np.errstate(all="ignore"):
            return (function(x),)

    return Kernel(lower, run)


KERNELS = {
    "ceil": unary((DType.FLOAT32,), lambda _, x: np.asarray(np.ceil(x))),
    "complex_abs": _part(lambda x: np.hypot(x.real.astype(np.float64), x.imag.astype(np.float64)).astype(x.real.dtype)),
    "cos": _circular(transcendental.cos),
    "floor": unary(_FLOATS, lambda dtype, x: by_number(dtype, x, np.floor)),
    "imag": _part(lambda x: np.ascontiguousarray(x.imag)),
    "logical_not": unary((DType.BOOL,), lambda _, x: np.asarray(np.logical_not(x))),
    "neg": unary((*_FLOATS, *_INTEGERS), _negative),
    "real": _part(lambda x: np.ascontiguousarray(x.real)),
    "round": unary(_FLOATS, _rounded),
    "sign": unary((DType.FLOAT32, DType.FLOAT64, DType.INT32), lambda _, x: np.asarray(np.sign(x) + x.dtype.type(0))),
    "sin": _circular(transcendental.sin),
    "square": unary((DType.FLOAT32,), lambda _, x: np.asarray(np.multiply(x, x))),
    "zeros_like": unary((DType.FLOAT32, DType.INT32, DType.INT64), lambda _, x: np.zeros_like(x)),
}
