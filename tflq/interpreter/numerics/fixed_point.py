"""Fixed-point primitives: each with its formula and its rounding (docs/rules/fixed_point.md).

All take and return numpy integers or arrays of them; operands broadcast. Values of 32 bits are stored in int64, so no
overflow is accidental: if the C code wraps or saturates, the function states it and does the same. `>>` is arithmetic.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tflq.arrays import Integers, Reals
from tflq.errors import UnsupportedError
from tflq.graph.operators import FUSED_ACTIVATIONS, RECTIFIER_BOUNDS
from tflq.interpreter.recording.primitive import primitive

INT32_MIN = -(1 << 31)
INT32_MAX = (1 << 31) - 1


@primitive("wrapped", "int32 of {x}")
def wrap_int32(x: ArrayLike) -> Integers:
    """Keep the low 32 bits as two's complement: the content of an int32 register after an overflow."""
    return np.asarray(x, np.int64).astype(np.int32).astype(np.int64)


def wrap_int16(x: Integers) -> Integers:
    """Keep the low 16 bits as two's complement: the content of an int16 register after an overflow."""
    return x.astype(np.int16).astype(np.int64)


@primitive("rounded", "norm({x}, {shift}), half up")
def norm(x: ArrayLike, shift: ArrayLike) -> Integers:
    """Shift with rounding: n == 0 ? x : (x + 2^(n-1)) >> n, arithmetic; ties go up.

    Args:
        x: integers.
        shift: 0..62; operands broadcast.

    Returns:
        int64; nothing wraps.
    """
    value, n = np.asarray(x, np.int64), np.asarray(shift, np.int64)
    return np.asarray((value + ((np.int64(1) << n) >> 1)) >> n, np.int64)


@primitive("saturated", "{x} saturated to {bits} bits")
def saturate(x: ArrayLike, bits: int) -> Integers:
    """Clip to a signed integer of `bits` bits: [-2^(bits-1), 2^(bits-1) - 1]."""
    return np.clip(np.asarray(x, np.int64), -(1 << (bits - 1)), (1 << (bits - 1)) - 1)


@primitive("high product", "SRDHM({a}, {b}) = ({a} * {b} +- 2^({bits}-2)) / 2^({bits}-1)")
def saturating_rounding_doubling_high_mul(a: ArrayLike, b: ArrayLike, bits: int = 32) -> Integers:
    """SRDHM: high word of twice the product, rounded to nearest.

    p = a * b; nudge = p >= 0 ? 2^(bits-2) : 1 - 2^(bits-2); result = trunc((p + nudge) / 2^(bits-1)).
    The division truncates after the nudge, so exact ties are rounded toward +infinity (0.5 -> 1, -0.5 -> 0). a = b =
    -2^(bits-1) saturates to 2^(bits-1) - 1.

    Args:
        a: signed integers of `bits` bits.
        b: the same.
        bits: 32, or 16 for the 16-bit twin.

    Returns:
        int64 array of signed integers of `bits` bits.

    Source: gemmlowp fixedpoint/fixedpoint.h, SaturatingRoundingDoublingHighMul.
    """
    product = np.asarray(a, np.int64) * np.asarray(b, np.int64)
    # For p < 0, trunc((p + 1 - h) / 2h) = ceil((p + 1 - h) / 2h) = floor((p + h) / 2h): one shift serves both signs.
    return np.asarray(np.minimum((product + (1 << (bits - 2))) >> (bits - 1), (1 << (bits - 1)) - 1), np.int64)


@primitive("high product", "{a} * {b} / 2^15, cut toward 0")
def saturating_doubling_high_mul_16(a: ArrayLike, b: ArrayLike) -> Integers:
    """trunc(a * b / 2^15) of int16 values, -2^15 * -2^15 saturating to 2^15 - 1 (HARD_SWISH; no rounding)."""
    product = np.asarray(a, np.int64) * np.asarray(b, np.int64)
    return np.minimum(_divide_toward_zero(product, 15), (1 << 15) - 1)


@primitive("rounded", "RDBP({x}, {exponent}) = {x} / 2^{exponent}, half away from 0")
def rounding_divide_by_pot(x: ArrayLike, exponent: ArrayLike) -> Integers:
    """RDBP: x / 2^exponent, rounded half away from zero.

    mask = 2^exponent - 1; threshold = (mask >> 1) + (x < 0); (x >> exponent) + ((x & mask) > threshold).

    Args:
        x: integers.
        exponent: 0..31 (C leaves other exponents undefined).

    Source: gemmlowp fixedpoint/fixedpoint.h, RoundingDivideByPOT.
    """
    value, e = np.asarray(x, np.int64), np.asarray(exponent, np.int64)
    # The same as (x + 2^(e-1) - (x < 0)) >> e for e > 0: a remainder above the threshold carries into the quotient.
    half = (np.int64(1) << e) >> 1
    return np.asarray((value + half + (value >> 63) * (e > 0)) >> e, np.int64)


@primitive("rounded", "MBQ = RDBP(SRDHM({x} << max({shift}, 0), {multiplier}), max(-{shift}, 0))")
def multiply_by_quantized_multiplier(x: ArrayLike, multiplier: ArrayLike, shift: ArrayLike) -> Integers:
    """MBQ: about x * multiplier * 2^(shift-31) with an int32 multiplier, rounded twice.

    RDBP(SRDHM(wrap32(x << (max(shift, 0) mod 32)), multiplier), max(-shift, 0)). The left shift wraps int32. C leaves
    shifts of 32 and more undefined; on x86 the processor takes their low 5 bits, and so does this function.

    Args:
        x: int32 values.
        multiplier: int32, of `quantize_multiplier`.
        shift: Shift, from -31; positive is left. From 32 on the result is that of x86.

    Source: TFLite kernels/internal/common.cc, MultiplyByQuantizedMultiplier, with double rounding as in the wheels.
    """
    exponent = np.asarray(shift, np.int64)
    shifted = wrap_int32(np.asarray(x, np.int64) << (np.maximum(exponent, 0) & 31))
    high = saturating_rounding_doubling_high_mul(shifted, multiplier)
    return rounding_divide_by_pot(high, np.maximum(-exponent, 0))


@primitive("rounded", "MBQ64 = {x} * ({multiplier} in 15 bits) / 2^(15 - {shift}), half up")
def multiply_by_quantized_multiplier_64(x: ArrayLike, multiplier: ArrayLike, shift: ArrayLike) -> Integers:
    """MBQ64: about x * multiplier * 2^(shift-31) for 48-bit x, with the multiplier cut to 15 bits.

    m = multiplier < 0x7FFF0000 ? (multiplier + 2^15) >> 16 : 0x7FFF; (x * m + 2^(14-shift)) >> (15-shift): rounded
    once, half up. The result is cut to int32. Shifts of more than 14 count to the right by a negative number, undefined
    in C; x86 takes the low 6 bits of both counts, and so does this function.

    Args:
        x: |x| < 2^47 (C demands it).
        multiplier: non-negative int32, of `quantize_multiplier`.
        shift: Shift, from -31; C defines up to 14.

    Source: TFLite kernels/internal/common.cc, MultiplyByQuantizedMultiplier(int64_t, ...).
    """
    wide = np.asarray(multiplier, np.int64)
    reduced = np.where(wide < 0x7FFF0000, (wide + (1 << 15)) >> 16, 0x7FFF)
    right = 15 - np.asarray(shift, np.int64)
    return wrap_int32((np.asarray(x, np.int64) * reduced + (np.int64(1) << ((right - 1) & 63))) >> (right & 63))


@primitive("rounded", "MBQ' = ({x} << max({shift}, 0)) * {multiplier} / 2^31, then / 2^max(-{shift}, 0), half up")
def multiply_by_quantized_multiplier_up(
    x: ArrayLike, multiplier: ArrayLike, shift: ArrayLike, away: ArrayLike
) -> Integers:
    """MBQ with ties of the second rounding up, toward +infinity.

    h = SRDHM(wrap32(x << max(shift, 0)), multiplier); (h + 2^(n-1) - (h < 0 ? away : 0)) >> n with n = max(-shift, 0);
    h if n = 0. Example: h = -3, n = 1: -1 with away = 0, -2 with away = 1.

    Args:
        x: Values of int32.
        multiplier: Multiplier of `quantize_multiplier`, int32.
        shift: Exponent from -31 to 31; positive is left.
        away: Flag of each channel: 1 to round half away from zero as MBQ does, 0 to round up.

    Source: TFLite with ruy and with vectorized requantization (docs/guides/runtimes.md).
    """
    exponent = np.asarray(shift, np.int64)
    shifted = wrap_int32(np.asarray(x, np.int64) << np.maximum(exponent, 0))
    high = saturating_rounding_doubling_high_mul(shifted, multiplier)
    n = np.maximum(-exponent, 0)
    half = (np.int64(1) << n) >> 1
    less = np.minimum(np.asarray(away, np.int64), half)  # 0 without a right shift
    return np.asarray((high + half - np.where(high < 0, less, 0)) >> n, np.int64)


@primitive("rounded", "({x} * {multiplier} + 2^(30 - {shift})) >> (31 - {shift}), rounded once, half up")
def multiply_by_quantized_multiplier_once(x: ArrayLike, multiplier: ArrayLike, shift: ArrayLike) -> Integers:
    """Single rounding: (x * multiplier + 2^(30-shift)) >> (31-shift) in 64 bits, ties toward +infinity.

    Args:
        x: Values of int32.
        multiplier: Multiplier of `quantize_multiplier`, int32.
        shift: Exponent from -31 to 30; positive is left.

    Source: CMSIS-NN Include/arm_nnsupportfunctions.h, arm_nn_requantize with CMSIS_NN_USE_SINGLE_ROUNDING.
    """
    right = 31 - np.asarray(shift, np.int64)
    product = np.asarray(x, np.int64) * np.asarray(multiplier, np.int64)
    return np.asarray((product + (np.int64(1) << (right - 1))) >> right, np.int64)


@primitive("rounded", "{x} rounded half away from 0")
def round_half_away(x: ArrayLike) -> Reals:
    """Round to the nearest integer, ties away from zero, in the precision of x (C's std::round; float64 for integers).

    Exact for every finite x: floor(|x| + 0.5) is not (0.49999999999999994 would become 1). NaN and infinity stay.
    """
    value = np.asarray(x)
    if value.dtype.kind != "f":
        value = value.astype(np.float64)
    whole = np.trunc(value)
    with np.errstate(invalid="ignore"):
        away = np.abs(value - whole) >= 0.5
    return np.asarray(np.where(away, whole + np.copysign(value.dtype.type(1), value), whole))


@primitive("as int32", "{x} cut to int32 as x86 does")
def float_to_int32(x: ArrayLike) -> Integers:
    """Cut floating-point numbers to int32 as x86 does: toward zero; NaN and values that do not fit become -2^31."""
    value = np.asarray(x, np.float64)
    fits = (value > INT32_MIN - 1.0) & (value < INT32_MAX + 1.0)
    return np.where(fits, value, INT32_MIN).astype(np.int64)


def quantize_multiplier(real: ArrayLike) -> tuple[Integers, Integers]:
    """Write real multipliers as (multiplier, shift), real ~ multiplier * 2^(shift-31).

    q, shift = frexp(real); multiplier = round_half_away(q * 2^31); 2^31 becomes 2^30 with shift + 1; shift < -31
    becomes (0, 0), as does 0. Large shifts are kept unchanged.

    Args:
        real: float64, one or many.

    Returns:
        multiplier and shift: int64, shaped as `real`. |multiplier| is 0 or in [2^30, 2^31 - 1].

    Raises:
        UnsupportedError: a real multiplier that is infinite or NaN.

    Source: TFLite kernels/internal/quantization_util.cc, QuantizeMultiplier.
    """
    if not np.isfinite(real).all():
        raise UnsupportedError("a multiplier of scales or options is infinite or NaN: it stands for nothing")
    fraction, exponent = np.frexp(np.asarray(real, np.float64))
    multiplier = round_half_away(fraction * (1 << 31)).astype(np.int64)
    shift = exponent.astype(np.int64)
    full = np.abs(multiplier) == 1 << 31
    multiplier, shift = np.where(full, multiplier // 2, multiplier), np.where(full, shift + 1, shift)
    vanishes = (shift < -31) | (multiplier == 0)
    return np.where(vanishes, 0, multiplier), np.where(vanishes, 0, shift)


def scalar_multiplier(real: float | np.floating) -> tuple[int, int]:
    """Write one real multiplier as (multiplier, shift); see `quantize_multiplier`."""
    multiplier, shift = quantize_multiplier(float(real))
    return int(multiplier), int(shift)


def quantize_multiplier_smaller_than_one(real: float) -> tuple[int, int]:
    """Write 0 < real < 1 as (multiplier, shift) with shift <= 0; TFLite aborts the process outside these bounds.

    Raises:
        UnsupportedError: real is not between 0 and 1.

    Source: TFLite kernels/internal/quantization_util.cc, QuantizeMultiplierSmallerThanOneExp.
    """
    if not 0.0 < real < 1.0:
        raise UnsupportedError(f"the ratio of scales is {real}; this operator takes ratios between 0 and 1, exclusive")
    multiplier, shift = quantize_multiplier(real)
    return int(multiplier), int(shift)


def quantize_multiplier_greater_than_one(real: float) -> tuple[int, int]:
    """Write real > 1 as (multiplier, left shift >= 0); TFLite aborts the process at 1 and below.

    Raises:
        UnsupportedError: real is not above 1.

    Source: TFLite kernels/internal/quantization_util.cc, QuantizeMultiplierGreaterThanOne.
    """
    if not real > 1.0:
        raise UnsupportedError(f"the ratio of scales is {real}; this operator takes ratios above 1")
    multiplier, shift = quantize_multiplier(real)
    return int(multiplier), int(shift)


def activation_bounds(activation: str) -> tuple[float | None, float | None]:
    """Return the real bounds of a fused activation ("none", "relu", "relu6", "relu_n1_to_1"); None is no bound.

    Raises:
        UnsupportedError: an activation of another name.
    """
    if activation not in FUSED_ACTIVATIONS:
        raise UnsupportedError(f"fused activation '{activation}'; known are {', '.join(sorted(FUSED_ACTIVATIONS))}")
    return RECTIFIER_BOUNDS.get(activation, (None, None))  # TFLite's integer kernels accept TANH and do not clamp


def activation_range(
    activation: str, scale: float | np.floating, zero_point: int, minimum: int, maximum: int
) -> tuple[int, int]:
    """Return the quantized values to which a fused activation clamps.

    q(v) = zero_point + round_half_away(f32(v / scale)), a division in float32; then intersected with the type.

    Args:
        activation: Name as in `activation_bounds`.
        scale: Scale of the output, used as float32.
        zero_point: Zero point of the output.
        minimum: smallest quantized value of the output's type.
        maximum: largest quantized value.

    Raises:
        UnsupportedError: v / scale does not fit int32, or the activation is not known.

    Source: TFLite kernels/kernel_util.cc, CalculateActivationRangeQuantizedImpl.
    """
    low, high = activation_bounds(activation)
    return (
        minimum if low is None else max(minimum, _code(low, scale, zero_point)),
        maximum if high is None else min(maximum, _code(high, scale, zero_point)),
    )


def _code(real: float, scale: float | np.floating, zero_point: int) -> int:
    with np.errstate(over="ignore"):
        quotient = float(round_half_away(np.float32(real) / np.float32(scale)))
    if not INT32_MIN <= quotient <= INT32_MAX:
        raise UnsupportedError(f"fused activation: {real} / scale {scale} does not fit int32")
    return zero_point + int(quotient)


def _divide_toward_zero(x: Integers, exponent: int) -> Integers:
    return np.where(x >= 0, x >> exponent, -(-x >> exponent))
