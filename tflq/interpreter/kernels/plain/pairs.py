"""Functions of two tensors of plain numbers, element by element: T[S or 1, *shape] twice -> T[S, *shape].

Shapes broadcast, except in ATAN2 and in StableHLO's operators, which take equal types and equal shapes. ADD, SUB, MUL,
DIV, SQUARED_DIFFERENCE and PRELU are one operation each in the tensor's type, equal to TFLite bit for bit.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from tflq.errors import UnsupportedError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.plain.binary import PlainBinary, clamp_in_place, lower_plain, plain_pair
from tflq.interpreter.kernels.plain.elementwise import Elementwise, binary, lower_binary
from tflq.interpreter.numerics.bfloat16 import narrow, numbers
from tflq.interpreter.numerics.fixed_point import float_to_int32
from tflq.interpreter.operands.checks import require_alpha_fits
from tflq.interpreter.registry import Kernel
from tflq.interpreter.samples import align

_BITS = (DType.INT8, DType.UINT8, DType.INT16, DType.UINT16, DType.INT32, DType.UINT32)
_ORDERED = (
    DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16, DType.UINT8, DType.INT8, DType.INT16, DType.INT32, DType.INT64,
)  # fmt: skip
STABLEHLO_INTEGERS = (
    DType.INT8, DType.INT16, DType.INT32, DType.INT64,
    DType.UINT8, DType.UINT16, DType.UINT32, DType.UINT64, DType.BOOL,
)  # fmt: skip
_STABLEHLO = (DType.FLOAT32, DType.FLOAT16, DType.FLOAT64, *STABLEHLO_INTEGERS)
_NUMBERS = (DType.FLOAT32, DType.FLOAT16, DType.INT16, DType.INT32, DType.INT64)


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


def _shift_left(_: DType, x: Array, y: Array) -> Array:
    count = y.astype(np.int32) & 31
    return np.asarray(np.left_shift(x.astype(np.int32), count).astype(x.dtype))


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


UNQUANTIZED = {
    "add": plain_pair("add", "x_1 + x_2 and a fused activation", _NUMBERS),
    "sub": plain_pair("sub", "x_1 - x_2 and a fused activation", (DType.FLOAT32, DType.INT32, DType.INT64)),
    "mul": plain_pair("mul", "x_1 * x_2 and a fused activation", (*_NUMBERS, DType.UINT32)),
    "div": Kernel(partial(lower_plain, "div", allowed=(DType.FLOAT32,)), _run_div,
        "float32: x / y and a fused activation. Without an activation results are clamped to the finite numbers, so "
        "that 1 / 0 is the largest one; 0 / 0 is NaN", "TFLite kernels/div.cc, internal/reference/div.h"),
    "squared_difference": binary((DType.FLOAT32,), _squared_difference,
        "float32: d = f32(x - y); f32(d * d)", "TFLite kernels/squared_difference.cc"),
    "prelu": Kernel(_lower_prelu, _run_prelu,
        "float32: x where x >= 0, else f32(x * alpha), alpha broadcast", "TFLite kernels/activations.cc (ApplyPrelu)"),
}  # fmt: skip

KERNELS = {
    "atan2": binary((DType.FLOAT32, DType.FLOAT64, DType.FLOAT16, DType.BFLOAT16), _angle,
        "the angle of the point (x, y), y the first input, computed in float64; shapes are equal. Within 1 unit in "
        "the last place of TFLite's (the host's atan2f)", "TFLite kernels/atan2.cc", broadcasts=False),
    "bitwise_xor": binary(_BITS, lambda _, x, y: np.asarray(np.bitwise_xor(x, y)),
        "x xor y, bit by bit", "TFLite kernels/bitwise_xor.cc"),
    "floor_div": binary((DType.FLOAT32, DType.INT8, DType.INT16, DType.INT32), _floor_div,
        "floor(x / y), divided in float64; a divisor of 0 is refused at run time",
        "TFLite kernels/floor_div.cc, internal/reference/floor_div.h"),
    "floor_mod": binary((DType.FLOAT32, DType.INT8, DType.INT16, DType.INT32, DType.INT64), _floor_mod,
        "x - y floor(x / y): C's remainder, plus y where their signs differ; refused at run time are an integer "
        "divisor of 0, and the lowest int32 or int64 by -1",
        "TFLite kernels/floor_mod.cc, internal/reference/floor_mod.h"),
    "logical_and": binary((DType.BOOL,), lambda _, x, y: np.asarray(np.logical_and(x, y)),
        "x and y", "TFLite kernels/logical.cc"),
    "logical_or": binary((DType.BOOL,), lambda _, x, y: np.asarray(np.logical_or(x, y)),
        "x or y", "TFLite kernels/logical.cc"),
    "maximum": binary(_ORDERED, _larger,
        "x > y ? x : y; a comparison with NaN is false, so y is taken; so it is of 0 and -0. Quantized values are "
        "compared as they are: scales and zero points do not enter, even where they differ",
        "TFLite kernels/maximum_minimum.cc"),
    "minimum": binary(_ORDERED, _smaller,
        "x < y ? x : y; a comparison with NaN is false, so y is taken; so it is of 0 and -0. Quantized values are "
        "compared as they are: scales and zero points do not enter, even where they differ",
        "TFLite kernels/maximum_minimum.cc"),
    "right_shift": binary(_BITS, lambda _, x, y: np.asarray(np.right_shift(x, np.clip(y, 0, 8 * x.itemsize - 1))),
        "x >> y; signed numbers keep their sign, counts are clamped to 0 .. width - 1",
        "TFLite kernels/right_shift.cc"),
    "stablehlo_add": binary(_STABLEHLO, lambda _, x, y: np.asarray(np.add(x, y)),
        "x + y; integers wrap, bools are joined by or", "TFLite kernels/stablehlo_add.cc, stablehlo_elementwise.h",
        broadcasts=False),
    "stablehlo_and": binary(STABLEHLO_INTEGERS, lambda _, x, y: np.asarray(np.bitwise_and(x, y)),
        "x and y, bit by bit; in TFLite's optimized set only",
        "TFLite kernels/stablehlo_and.cc, stablehlo_elementwise.h", broadcasts=False),
    "stablehlo_maximum": binary(_STABLEHLO, lambda _, x, y: np.where(np.less(x, y), y, x),
        "x < y ? y : x", "TFLite kernels/stablehlo_min_max.cc, stablehlo_elementwise.h", broadcasts=False),
    "stablehlo_minimum": binary(_STABLEHLO, lambda _, x, y: np.where(np.less(y, x), y, x),
        "y < x ? y : x", "TFLite kernels/stablehlo_min_max.cc, stablehlo_elementwise.h", broadcasts=False),
    "stablehlo_multiply": binary(_STABLEHLO, lambda _, x, y: np.asarray(np.multiply(x, y)),
        "x * y; integers wrap, bools are joined by and",
        "TFLite kernels/stablehlo_multiply.cc, stablehlo_elementwise.h", broadcasts=False),
    "stablehlo_shift_left": binary((DType.INT8, DType.INT16, DType.INT32), _shift_left,
        "x << y; int8 and int16 are widened to int32 first and cut after. Counts outside 0 .. 31 are undefined in "
        "C++; they count modulo 32 here, as on x86",
        "TFLite kernels/stablehlo_shift_left.cc; in TFLite's optimized set only", broadcasts=False),
}  # fmt: skip
