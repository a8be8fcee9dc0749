"""Functions of two tensors of plain numbers, element by element: T[S or 1, *shape] twice -> T[S, *shape].

Shapes broadcast, except in ATAN2.
"""

from __future__ import annotations

import numpy as np

from tflq.errors import UnsupportedError
from tflq.graph import Array, DType
from tflq.interpreter.kernels.plain.elementwise import binary
from tflq.interpreter.numerics.bfloat16 import narrow, numbers
from tflq.interpreter.numerics.fixed_point import float_to_int32

_BITS = (DType.INT8, DType.UINT8, DType.INT16, DType.UINT16, DType.INT32, DType.UINT32)
_ORDERED = (
    DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16, DType.UINT8, DType.INT8, DType.INT16, DType.INT32, DType.INT64,
)  # fmt: skip


def _angle(dtype: DType, y: Array, x: Array) -> Array:
    angle = np.arctan2(*(numbers(dtype, array).astype(np.float64) for array in (y, x)))
    if dtype is DType.BFLOAT16:
        return narrow(angle)
    return np.asarray(angle.astype(np.float32 if dtype is DType.FLOAT16 else y.dtype).astype(y.dtype))


def _floor_div(dtype: DType, x: Array, y: Array) -> Array:
    _refuse_zero("floor_div", y)
    quotient = np.floor(x.astype(np.float64) / y.astype(np.float64))
    if dtype is DType.FLOAT32:
        return np.asarray(quotient.astype(np.float32))
    return float_to_int32(quotient).astype(x.dtype)


def _floor_mod(dtype: DType, x: Array, y: Array) -> Array:
    if dtype.is_integer:
        _refuse_zero("floor_mod", y)
    if dtype in (DType.INT32, DType.INT64) and np.any(np.equal(x, dtype.minimum) & np.equal(y, -1)):
        raise UnsupportedError("floor_mod: the lowest number by -1; TFLite ends the process there")
    rest = np.fmod(x, y)
    return np.where((rest != 0) & (np.less(y, 0) != (rest < 0)), np.add(rest, y), rest)


def _refuse_zero(operator: str, y: Array) -> None:
    if np.any(np.equal(y, 0)):
        raise UnsupportedError(f"{operator}: a divisor is 0; TFLite refuses it")


def _larger(dtype: DType, x: Array, y: Array) -> Array:
    if dtype.is_integer:
        return np.asarray(np.maximum(x, y))
    return np.where(np.greater(numbers(dtype, x), numbers(dtype, y)), x, y)


def _smaller(dtype: DType, x: Array, y: Array) -> Array:
    if dtype.is_integer:
        return np.asarray(np.minimum(x, y))
    return np.where(np.less(numbers(dtype, x), numbers(dtype, y)), x, y)


_OF_EQUALS = "a comparison with NaN is false, so y is taken; so it is of 0 and -0"
_AS_THEY_ARE = "Quantized values are compared as they are: scales and zero points do not enter, even where they differ"

KERNELS = {
    "atan2": binary(
        "the angle of the point (x, y), y the first input, computed in float64; shapes are equal. Within 1 unit "
        "in the last place of TFLite's (the host's atan2f)",
        "TFLite kernels/atan2.cc",
        (DType.FLOAT32, DType.FLOAT64, DType.FLOAT16, DType.BFLOAT16),
        _angle,
        broadcasts=False,
    ),
    "bitwise_xor": binary(
        "x xor y, bit by bit", "TFLite kernels/bitwise_xor.cc", _BITS, lambda _, x, y: np.asarray(np.bitwise_xor(x, y))
    ),
    "floor_div": binary(
        "floor(x / y), divided in float64; a divisor of 0 is refused at run time",
        "TFLite kernels/floor_div.cc, internal/reference/floor_div.h",
        (DType.FLOAT32, DType.INT8, DType.INT16, DType.INT32),
        _floor_div,
    ),
    "floor_mod": binary(
        "x - y floor(x / y): C's remainder, plus y where their signs differ; refused at run time are an "
        "integer divisor of 0, and the lowest int32 or int64 by -1",
        "TFLite kernels/floor_mod.cc, internal/reference/floor_mod.h",
        (DType.FLOAT32, DType.INT8, DType.INT16, DType.INT32, DType.INT64),
        _floor_mod,
    ),
    "logical_and": binary(
        "x and y", "TFLite kernels/logical.cc", (DType.BOOL,), lambda _, x, y: np.asarray(np.logical_and(x, y))
    ),
    "logical_or": binary(
        "x or y", "TFLite kernels/logical.cc", (DType.BOOL,), lambda _, x, y: np.asarray(np.logical_or(x, y))
    ),
    "maximum": binary(
        f"x > y ? x : y; {_OF_EQUALS}. {_AS_THEY_ARE}", "TFLite kernels/maximum_minimum.cc", _ORDERED, _larger
    ),
    "minimum": binary(
        f"x < y ? x : y; {_OF_EQUALS}. {_AS_THEY_ARE}", "TFLite kernels/maximum_minimum.cc", _ORDERED, _smaller
    ),
    "right_shift": binary(
        "x >> y; signed numbers keep their sign, counts are clamped to 0 .. width - 1",
        "TFLite kernels/right_shift.cc",
        _BITS,
        lambda _, x, y: np.asarray(np.right_shift(x, np.clip(y, 0, 8 * x.itemsize - 1))),
    ),
}
