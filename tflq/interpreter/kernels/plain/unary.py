"""Functions of one tensor of plain numbers, element by element: T[S, *shape] -> T[S, *shape]."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tflq.graph import Array, DType
from tflq.interpreter.kernels.plain.elementwise import unary
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


def _circular(name: str, function: Callable[[NDArray[np.float32]], Array]) -> Kernel:
    return unary(
        f"{name}(x), computed in float64 and rounded once; within 1 unit in the last place of TFLite's (the host's "
        f"{name}f)",
        "TFLite kernels/elementwise.cc",
        (DType.FLOAT32, DType.FLOAT16),
        lambda _, x: function(x.astype(np.float32)).astype(x.dtype),
    )


KERNELS = {
    "cos": _circular("cos", transcendental.cos),
    "sin": _circular("sin", transcendental.sin),
    "ceil": unary(
        "the smallest whole number that is not below x. Equal to TFLite bit for bit",
        "TFLite kernels/ceil.cc",
        (DType.FLOAT32,),
        lambda _, x: np.asarray(np.ceil(x)),
    ),
    "floor": unary(
        "the largest whole number that is not above x. Equal to TFLite bit for bit",
        "TFLite kernels/floor.cc",
        _FLOATS,
        lambda dtype, x: by_number(dtype, x, np.floor),
    ),
    "logical_not": unary(
        "not x", "TFLite kernels/elementwise.cc", (DType.BOOL,), lambda _, x: np.asarray(np.logical_not(x))
    ),
    "neg": unary(
        "-x. Quantized values are negated as they are, scales and zero points do not enter; the lowest integer stays",
        "TFLite kernels/neg.cc",
        (*_FLOATS, *_INTEGERS),
        _negative,
    ),
    "round": unary(
        "x rounded to a whole number, ties to even; what rounds up to 0 is +0. Equal to TFLite bit for bit",
        "TFLite kernels/round.cc, internal/reference/round.h; in TFLite's optimised set only",
        _FLOATS,
        _rounded,
    ),
    "sign": unary(
        "1 above 0, -1 below, 0 at 0 and -0; NaN stays",
        "TFLite kernels/sign.cc",
        (DType.FLOAT32, DType.FLOAT64, DType.INT32),
        lambda _, x: np.asarray(np.sign(x) + x.dtype.type(0)),
    ),
    "square": unary(
        "f32(x * x). Equal to TFLite bit for bit",
        "TFLite kernels/elementwise.cc",
        (DType.FLOAT32,),
        lambda _, x: np.asarray(np.multiply(x, x)),
    ),
    "zeros_like": unary(
        "zeros in the shape of x",
        "TFLite kernels/zeros_like.cc",
        (DType.FLOAT32, DType.INT32, DType.INT64),
        lambda _, x: np.zeros_like(x),
    ),
}
