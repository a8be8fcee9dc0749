"""SOFTMAX and LOG_SOFTMAX over the last axis, in TFLite's integer arithmetic (docs/rules/tflite/index.md).

SOFTMAX: int8, uint8 (output of the same type or int16): exp is a fixed-point polynomial, so a table of the 256
differences to the row's maximum: e = exp(SRDHM(d << left_shift, m)) without integer bits, 0 if d < -floor(31 * 2^26 /
2^left_shift). The sum of RDBP(e, 12) has 12 integer bits; y = clamp(RDBP(SRDHM(1 / sum, e), bits over unit + 31 - 8 or
16) + lowest). (m, left_shift) is the multiplier of min(beta * s_i * 2^26, 2^31 - 1) in float64.

int16: two tables of 513 points with straight lines between them. d = x - max(row); e = exp_table(clamp(MBQ(d, m, s) +
32767)), with -65535..0 for -10..0; sum in 15 fraction bits; u = ((sum << (z - 1)) + 2^13) >> 14 with z leading zeros; r
= reciprocal_table(u - 2^15 - 2^16); y = clamp((e r + 2^(30 - z)) >> (31 - z), 0, 32767). (m, s) is the multiplier of
f32(s_i beta) / (10 / 65535), TFLM: of the product in float64.

LiteRT's optimized kernel, 8 bits, all in float32: e = exp(-f32(s_i beta) * (max - x)); t = f32(1 / f32(sum(e) * s_o)),
summed in order; y = clamp(half_away(f32(e t)) + z_o), for uint8 trunc(f32(f32(e t) + 0.5)).

LOG_SOFTMAX: d = x - max of the row; t = SRDHM(d << s, m) with 5 integer bits, (m, s) of min(s_i 2^26, 2^31 - 1) in
float64; the sum of RDBP(exp(t), 12) over d >= -floor(31 * 2^26 / 2^s) has 12 integer bits; l = ln(sum)
(integer_functions.py); y = clamp(RDBP(t - l, 22) + highest quantized value). If d is at or below max(-floor(...) - 1,
MBQ(l - 2^31, of 2^(31-s) / m)) y is the lowest quantized value. The output has scale 1/16 and zero point 127 or 255.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tflq.arrays import Integers, Singles
from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Array, DType, Node, Operands, Tensor
from tflq.interpreter.kernels.plain.elementwise import lower_unary
from tflq.interpreter.numerics.fixed_point import (
    INT32_MAX,
    INT32_MIN,
    multiply_by_quantized_multiplier,
    quantize_multiplier,
    quantize_multiplier_greater_than_one,
    quantize_multiplier_smaller_than_one,
    round_half_away,
    rounding_divide_by_pot,
    wrap_int32,
)
from tflq.interpreter.numerics.fixed_point import multiply_by_quantized_multiplier as mbq
from tflq.interpreter.numerics.fixed_point import saturating_rounding_doubling_high_mul as srdhm
from tflq.interpreter.numerics.gemmlowp import (
    bit_length,
    exp_on_negative_values,
    product,
    reciprocal,
    reciprocal_of_one,
)
from tflq.interpreter.numerics.integer_functions import natural_logarithm
from tflq.interpreter.numerics.lookup_tables import look_up_513, lut513
from tflq.interpreter.numerics.transcendental import exp
from tflq.interpreter.operands.checks import EIGHT_BITS, per_tensor, require_symmetric, require_type
from tflq.interpreter.recording.primitive import recorder
from tflq.interpreter.registry import Kernel

DIFFERENCE_BITS = 5
SUM_BITS = 12


@dataclass(frozen=True, eq=False)
class Addends:
    """The addends of a row's sum, by the difference of an element from the row's maximum.

    Attributes:
        multiplier: int32, of the differences.
        left_shift: Left shift of the differences.
        smallest_difference: elements with a smaller difference are not added.
        addends: int64[256]: RDBP(e, 12), e the exponential of the differences 0, -1, ..., -255.
    """

    multiplier: int
    left_shift: int
    smallest_difference: int
    addends: Integers


@dataclass(frozen=True, eq=False)
class Softmax(Addends):
    """The params of one SOFTMAX of 8 bits.

    Attributes:
        exponentials: int64[256]: e of the differences 0, -1, ..., -255.
        output: type of the output.
    """

    exponentials: Integers
    output: DType


@dataclass(frozen=True, eq=False)
class SoftmaxInFloat:
    """The params of one SOFTMAX of 8 bits in float32, as LiteRT's optimized kernel computes it.

    Attributes:
        exponentials: Table float32[256]: e of the differences 0, -1, ..., -255.
        scale: Scale of the output.
        zero_point: Zero point of the output.
        output: Type of the output.
    """

    exponentials: Singles
    scale: np.float32
    zero_point: int
    output: DType


def _lower_softmax(
    node: Node, operands: Operands, in_float: bool = False, wide_scales: bool = False
) -> Softmax | SoftmaxInt16 | SoftmaxInFloat:
    """Decide multiplier and table.

    Args:
        node: SOFTMAX.
        operands: Operands of the node.
        in_float: Whether 8 bits are computed in float32.
        wide_scales: Whether the multiplier of int16 is computed in float64.

    Raises:
        UnsupportedError: a type that TFLite's kernel does not take, an output quantization that it refuses, or a beta
            at which it aborts the process (0, NaN, or so small that beta * scale * 2^26 <= 1).
        GraphError: a scalar input, or a tensor without scale.
    """
    source, output = operands.input(0), operands.output()
    dtype = require_type(source, (*EIGHT_BITS, DType.INT16))
    require_type(output, (DType.INT16,) if dtype is DType.INT16 else (dtype, DType.INT16))
    if not source.shape:
        raise GraphError("the input is a scalar; softmax takes one axis or more")
    scale, _ = per_tensor(source)
    beta = node.attributes.real("beta", 0.0)
    _require_output(dtype, output)
    if dtype is DType.INT16:
        return _lower_int16(source, beta, wide_scales)
    if in_float:
        step = -scale * np.float32(beta)
        table = exp(step * np.arange(256).astype(np.float32))
        return SoftmaxInFloat(table, *per_tensor(output), output.dtype)
    real = min(beta * float(scale) * (1 << (31 - DIFFERENCE_BITS)), float(INT32_MAX))
    if not real > 1.0:
        raise UnsupportedError(
            f"beta {beta} with input scale {scale}: beta * scale * 2^26 is {real:.6g}; TFLite aborts the process at 1 "
            f"and below"
        )
    addends, exponentials = addends_of(real)
    return Softmax(**vars(addends), exponentials=exponentials, output=output.dtype)


def addends_of(real: float) -> tuple[Addends, Integers]:
    """Return the addends of differences, and their exponentials, for `real` = 2^26 times a difference of 1."""
    multiplier, left_shift = quantize_multiplier_greater_than_one(real)
    smallest = -math.floor(31.0 * (1 << (31 - DIFFERENCE_BITS)) / (1 << left_shift))
    difference = -np.arange(256, dtype=np.int64)
    used = difference >= smallest
    scaled = srdhm(np.where(used, difference, 0) << left_shift, multiplier)
    exponentials = np.where(used, exp_on_negative_values(scaled, DIFFERENCE_BITS), 0)
    addends = rounding_divide_by_pot(exponentials, SUM_BITS)
    return Addends(multiplier, left_shift, smallest, addends), exponentials


def _run_softmax(params: Softmax | SoftmaxInt16 | SoftmaxInFloat, x: Array) -> tuple[Array, ...]:
    """Run SOFTMAX: T[S, ..., C] -> U[S, ..., C].

    Raises:
        UnsupportedError: the exponentials of an 8-bit output sum up to 512 or more (at least 512 values near the
            row's maximum): TFLite aborts the process there.
    """
    if isinstance(params, SoftmaxInt16):
        return (_run_int16(params, x),)
    if isinstance(params, SoftmaxInFloat):
        return (_run_in_float(params, x),)
    below: Integers = np.subtract(np.maximum.reduce(x, axis=-1, keepdims=True), x, dtype=np.int16)
    total = np.add.reduce(np.take(params.addends, below), axis=-1, keepdims=True) & 0xFFFFFFFF
    if total.size == 1 and recorder() is None:
        return (_scale_exponentials(params, below, *reciprocal_of_one(total.item(), SUM_BITS)),)
    return (_scale_exponentials(params, below, *reciprocal(total, SUM_BITS)),)


def _run_in_float(params: SoftmaxInFloat, x: Array) -> Array:
    below = np.subtract(np.maximum.reduce(x, axis=-1, keepdims=True), x, dtype=np.int16)
    e = np.take(params.exponentials, below)
    factor = np.float32(1) / (np.cumsum(e, axis=-1, dtype=np.float32)[..., -1:] * params.scale)
    if params.output is DType.UINT8:
        codes = (e * factor + np.float32(0.5)).astype(np.int64)
    else:
        codes = round_half_away(e * factor).astype(np.int64) + params.zero_point
    return np.asarray(np.clip(codes, params.output.minimum, params.output.maximum), params.output.storage)


def _scale_exponentials(params: Softmax, below: Integers, mantissa: Integers | int, over_unit: Integers | int) -> Array:
    """Return the codes: the exponentials times 1 / sum, which is mantissa * 2^(-31 - over_unit)."""
    exponent = over_unit + (31 - params.output.bits)
    if np.less(31, exponent).any():
        raise UnsupportedError(
            "softmax: the exponentials of a row sum up to 512 or more; TFLite aborts the process there"
        )
    # Neither factor is negative, and the exponent is 15 or more: RDBP is an addition of half and a shift.
    scaled = (product(np.take(params.exponentials, below), mantissa) + (1 << (exponent - 1))) >> exponent
    result: Array = np.minimum(scaled + params.output.minimum, params.output.maximum)
    return result.astype(params.output.storage)


def _require_output(source: DType, output: Tensor) -> None:
    if source is not output.dtype or source is DType.UINT8:
        return
    scale, zero_point = per_tensor(output)
    wanted = 1.0 / (1 << output.dtype.bits) if source is DType.INT8 else 1.0 / 32768
    wanted_zero_point = -128 if source is DType.INT8 else 0
    tolerance: Singles = np.asarray(0.001 * wanted, np.float32)
    if zero_point != wanted_zero_point or abs(float(scale) - wanted) > tolerance:
        raise UnsupportedError(
            f"the output has scale {scale} and zero point {zero_point}; "
            f"TFLite's {source.value} softmax takes {wanted} and {wanted_zero_point}"
        )


_RANGE = 65535


@dataclass(frozen=True, eq=False)
class SoftmaxInt16:
    """The params of one SOFTMAX of int16.

    Attributes:
        multiplier: int32.
        shift: positive is left.
        exp_table: int16[513], of -10..0.
        reciprocal_table: int16[513], 1 / (1 + x) of 0..1.
        exponentials: int16[65536]: e of the differences 0, -1, ..., -65535.
    """

    multiplier: int
    shift: int
    exp_table: NDArray[np.int16]
    reciprocal_table: NDArray[np.int16]
    exponentials: NDArray[np.int16]


def _lower_int16(source: Tensor, beta: float, wide_scales: bool) -> SoftmaxInt16:
    """Decide multiplier and tables.

    Raises:
        UnsupportedError: a zero point other than 0, or a beta that is no positive number.
    """
    require_symmetric(source)
    scale, _ = per_tensor(source)
    factor = float(scale) * float(np.float32(beta)) if wide_scales else float(scale * np.float32(beta))
    real = factor / (10.0 / 65535.0)
    if not 0.0 <= real < np.inf:
        raise UnsupportedError(f"beta {beta} with input scale {scale}; beta * scale must be finite and not negative")
    multiplier, shift = (int(part) for part in quantize_multiplier(real))
    if shift > 30:
        raise UnsupportedError(f"beta {beta} with input scale {scale}: the multiplier does not fit int32")
    kind = np.float32 if wide_scales else np.float64
    function = exp if wide_scales else np.exp
    exp_table = lut513(function, 10.0 / _RANGE, 32767, 2.0 / _RANGE, kind)
    reciprocal_table = lut513(lambda x: kind(1.0) / (kind(1.0) + x), 1.0 / _RANGE, -32768, 2.0 / _RANGE, kind)
    scaled = mbq(-np.arange(65536, dtype=np.int64), multiplier, shift)
    exponentials = look_up_513(exp_table, np.clip(scaled + 32767, -32768, 32767)).astype(np.int16)
    return SoftmaxInt16(multiplier, shift, exp_table, reciprocal_table, exponentials)


def _run_int16(params: SoftmaxInt16, x: Array) -> Array:
    """Run it: int16[S, ..., C] -> int16[S, ..., C]."""
    below = x.max(-1, keepdims=True).astype(np.int32) - x
    e = np.take(params.exponentials, below).astype(np.int64)
    total = e.sum(-1, keepdims=True)
    zeros = 32 - bit_length(total)
    shifted = ((total << (zeros - 1)) + (1 << 13)) >> 14
    centered = np.clip(shifted - ((1 << 15) + (1 << 16)), -32768, 32767)
    r = look_up_513(params.reciprocal_table, centered)
    right = 31 - zeros
    result = (e * r + (np.int64(1) << (right - 1))) >> right
    return np.asarray(np.clip(result, 0, 32767), np.int16)


OUTPUT_BITS = 4


@dataclass(frozen=True, eq=False)
class LogSoftmax(Addends):
    """The params of one LOG_SOFTMAX.

    Attributes:
        reverse_multiplier: int32, from 5 integer bits back to differences.
        reverse_shift: 0 or negative.
        scaled: int64[256]: t of the differences 0, -1, ..., -255.
        dtype: Type of input and output.
    """

    reverse_multiplier: int
    reverse_shift: int
    scaled: Integers
    dtype: DType


def _lower_log_softmax(node: Node, operands: Operands) -> LogSoftmax:  # noqa: ARG001
    """Decide multipliers and tables.

    Raises:
        UnsupportedError: a type or an output quantization that TFLite's kernel does not take, or an input scale at
            which it aborts the process (2^-26 or less).
        GraphError: a tensor without scale, or a scalar.
    """
    source, output = operands.input(0), operands.output()
    dtype = lower_unary(operands, EIGHT_BITS).dtype
    if not source.shape:
        raise GraphError("the input is a scalar; log_softmax takes one axis or more")
    scale, zero_point = per_tensor(output)
    if float(scale) != 1 / 16 or zero_point != dtype.maximum:
        raise UnsupportedError(
            f"the output has scale {scale} and zero point {zero_point}; TFLite's {dtype.value} log_softmax takes 1/16 "
            f"and {dtype.maximum}"
        )
    real = min(float(per_tensor(source)[0]) * (1 << (31 - DIFFERENCE_BITS)), float(INT32_MAX))
    addends, _ = addends_of(real)
    reverse, reverse_shift = quantize_multiplier_smaller_than_one(2.0 ** (31 - addends.left_shift) / addends.multiplier)
    difference = -np.arange(256, dtype=np.int64)
    scaled = multiply_by_quantized_multiplier(difference, addends.multiplier, addends.left_shift)
    return LogSoftmax(
        **vars(addends), reverse_multiplier=reverse, reverse_shift=reverse_shift, scaled=scaled, dtype=dtype
    )


def _run_log_softmax(params: LogSoftmax, x: Array) -> tuple[Array, ...]:
    """Run LOG_SOFTMAX: T[S, ..., C] -> T[S, ..., C].

    Raises:
        UnsupportedError: the exponentials of a row sum up to 4096 or more and overflow TFLite's int32.
    """
    below = np.max(x, -1, keepdims=True).astype(np.int16) - x
    total = np.take(params.addends, below).sum(-1, keepdims=True)
    if total.size and int(total.max()) >= 1 << 31:
        raise UnsupportedError("log_softmax: the exponentials of a row sum up to 4096, where TFLite's int32 overflows")
    logarithm = natural_logarithm(total, SUM_BITS)
    limit = np.maximum(
        params.smallest_difference - 1,
        multiply_by_quantized_multiplier(logarithm + INT32_MIN, params.reverse_multiplier, params.reverse_shift),
    )
    difference = wrap_int32(np.take(params.scaled, below) - logarithm)
    highest, lowest = params.dtype.maximum, params.dtype.minimum
    code = rounding_divide_by_pot(difference, 31 - DIFFERENCE_BITS - OUTPUT_BITS) + highest
    return (np.where(-below > limit, np.clip(code, lowest, highest), lowest).astype(x.dtype),)


KERNELS = {
    "softmax": Kernel(_lower_softmax, _run_softmax,
        "SOFTMAX over the last axis, in TFLite's integer arithmetic (docs/rules/tflite/index.md)",
        "TFLite kernels/activations.cc (SoftmaxPrepare) and internal/reference/softmax.h (SoftmaxInt16)"),
    "log_softmax": Kernel(_lower_log_softmax, _run_log_softmax,
        "LOG_SOFTMAX over the last axis, in TFLite's integer arithmetic (docs/rules/tflite/index.md). int8, uint8",
        "TFLite kernels/activations.cc (LogSoftmaxPrepare), internal/reference/integer_ops/log_softmax.h, "
        "internal/reference/log_softmax.h"),
}  # fmt: skip
