"""SUM, MEAN and REDUCE_PROD over some axes, in TFLite's integer arithmetic (docs/rules/tflite/index.md).

SUM of int8, uint8, int16: y = clamp(MBQ(sum - z_i n, of s_i / s_o in float64) + z_o); the sum is an int32 that wraps.
TFLite's reference kernel reads int8 and int16 data as uint8, whatever they are; the rule here is the one it states and
follows for uint8. int32, int64 without quantization: the sum in the tensor's type, which wraps.

MEAN of int8, uint8, int16: y = clamp(MBQ(sum - z_i n, m', s - k) + z_o) with (m, s) of s_i / s_o in float64, k =
min(floor(log2 n), 32, 31 + s) and m' = trunc((m << k) / n): the division by n is part of the multiplier. The
accumulator is an int32 that wraps. int32, int64 without quantization: int64 sum, divided toward zero.

Other runtimes, SUM and MEAN of 8 bits (docs/guides/runtimes.md), in float32: XNNPACK: y = clamp(half_to_even(sum * r
+ o)), r = (s_i / s_o) (1 / n), for SUM without 1 / n, o = z_o - (n z_i) r. LiteRT's optimized SUM: y =
clamp(half_away(sum * r + o) + z_o), r = s_i / s_o, o = -z_i r n. LiteRT's optimized MEAN over height and width with
kept axes: y = clamp(MBQ(sum, of s_i / (n s_o)) + z_o - half_away(z_i s_i / s_o)), ties of the first 16 * floor(C /
16) channels up.

REDUCE_PROD of int8, int16: p = x_0 - z_i; for each further element p = MBQ64(p (x - z_i)); y = clamp(MBQ64(p) + z_o),
all with the multiplier of s_i / s_o^(1/n) in float64: each step rescales, so that p stays an int32 (cut, not clamped).
Integers without quantization: the product in the tensor's type, which wraps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from tflq.arrays import Integers
from tflq.errors import UnsupportedError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.plain.reduction import PlainReduction, lower_plain_reduction, rows_of, run_fold
from tflq.interpreter.kernels.tflite.rescale import Rounding
from tflq.interpreter.numerics.fixed_point import (
    float_to_int32,
    multiply_by_quantized_multiplier_64,
    multiply_by_quantized_multiplier_up,
    round_half_away,
    scalar_multiplier,
    wrap_int32,
)
from tflq.interpreter.numerics.fixed_point import multiply_by_quantized_multiplier as mbq
from tflq.interpreter.operands.checks import (
    EIGHT_BITS,
    Reduction,
    is_quantized,
    lower_reduction,
    per_tensor,
    quantized_ends,
    require_same_type,
    require_type,
    shape_of_result,
)
from tflq.interpreter.registry import Kernel

PLAIN_TYPES = (DType.INT32, DType.INT64)
FLOAT32_EXACT = 1 << 24
"""Integers up to here, and so all sums of integers that stay below, are exact in float32."""
LARGEST_SHIFT = 14
"""Beyond it MBQ64 shifts right by 0 or less, which C++ leaves undefined."""


@dataclass(frozen=True)
class Line:
    """y = round(f32(f32(sum) * scale) + offset) + zero, in float32.

    Attributes:
        scale: Quantized values of the output per unit of the sum.
        offset: Added before rounding.
        zero: Added after rounding.
        is_away: Whether halves round away from zero; else to the even number.
    """

    scale: np.float32
    offset: np.float32
    zero: int
    is_away: bool

    def apply(self, sums: Integers) -> Integers:
        """Return the quantized values, not clamped, of sums of stored values."""
        real = sums.astype(np.float32) * self.scale + self.offset
        return float_to_int32(round_half_away(real) if self.is_away else np.rint(real)) + self.zero


@dataclass(frozen=True)
class QuantizedReduction:
    """The params of one reduction.

    Attributes:
        reduction: axes and count.
        dtype: Type of input and output.
        input_zero_point: Zero point of the input.
        output_zero_point: Zero point of the output.
        multiplier: int32: of the whole for SUM, with 1 / n in it for MEAN, of one step for REDUCE_PROD; 0 if the
            tensors are not quantized.
        shift: positive is left.
        line: Float32 rule that replaces MBQ; None if MBQ runs.
        away: Flags int64[C]: 1 for channels that round half away from zero, 0 for channels that round up; None for MBQ.
    """

    reduction: Reduction
    dtype: DType
    input_zero_point: int = 0
    output_zero_point: int = 0
    multiplier: int = 0
    shift: int = 0
    line: Line | None = None
    away: Integers | None = None


def _lower_sum(
    node: Node, operands: Operands, rounding: Rounding = Rounding.DOUBLE
) -> QuantizedReduction | PlainReduction:
    """Decide the params of SUM; `rounding` of 8 bits is DOUBLE, FLOAT32 (XNNPACK) or UP (optimized).

    Raises:
        UnsupportedError: a type that TFLite's kernel does not take.
        GraphError: a tensor without scale; an axis out of range, or computed at run time.
    """
    dtype = require_type(operands.input(0), (*EIGHT_BITS, DType.INT16, *PLAIN_TYPES))
    if dtype in PLAIN_TYPES:
        return lower_plain_reduction(node, operands, PLAIN_TYPES)
    _, si, zi, so, zo = quantized_ends(operands, (dtype,))
    multiplier, shift = scalar_multiplier(float(si) / float(so))
    reduction, line = lower_reduction(node, operands), None
    if rounding is Rounding.FLOAT32:
        line = _line_of_xnnpack(operands, reduction.count, si / so)
    elif rounding is Rounding.UP:
        scale = si / so
        line = Line(scale, np.float32(-zi) * scale * np.float32(reduction.count), zo, is_away=True)
    return QuantizedReduction(reduction, dtype, zi, zo, multiplier, shift, line)


def _run_sum(params: QuantizedReduction | PlainReduction, x: Array, *_axes: Array) -> tuple[Array, ...]:
    """Run SUM: T[S, *shape] -> T[S, *shape without the axes, or with 1 there]."""
    if isinstance(params, PlainReduction):
        return run_fold(params, x, operation=np.add)
    if x.size == 0:
        return (np.zeros(shape_of_result(params.reduction, x), x.dtype),)
    total = np.add.reduce(x, axis=tuple(axis + 1 for axis in params.reduction.axes), dtype=np.int64)
    return (_rescale_total(params, total).reshape(shape_of_result(params.reduction, x)),)


def _lower_mean(node: Node, operands: Operands, rounding: Rounding = Rounding.DOUBLE) -> QuantizedReduction:
    """Decide the params of MEAN; `rounding` of 8 bits is DOUBLE, FLOAT32 (XNNPACK) or UP (optimized).

    Raises:
        UnsupportedError: a type that TFLite's kernel does not take.
        GraphError: an axis out of range, or computed at run time.
    """
    source = operands.input(0)
    dtype = require_type(source, (*EIGHT_BITS, DType.INT16, *PLAIN_TYPES))
    require_same_type(source, operands.output())
    reduction = lower_reduction(node, operands)
    if dtype in PLAIN_TYPES:
        return QuantizedReduction(reduction, dtype)
    _, si, zi, so, zo = quantized_ends(operands, (dtype,))
    wide, exponent = scalar_multiplier(float(si) / float(so))
    count = max(1, reduction.count)
    k = min(count.bit_length() - 1, 32, 31 + exponent)
    params = QuantizedReduction(reduction, dtype, zi, zo, (wide << k) // count, exponent - k)
    if rounding is Rounding.FLOAT32 and dtype in EIGHT_BITS:
        return replace(params, line=_line_of_xnnpack(operands, count, si / so * (np.float32(1) / np.float32(count))))
    is_image = reduction.keep_dims and len(source.shape) == 4 and reduction.axes == (1, 2)
    return _optimize_mean(params, operands) if rounding is Rounding.UP and is_image and dtype in EIGHT_BITS else params


def _line_of_xnnpack(operands: Operands, count: int, scale: np.float32) -> Line:
    zi, zo = per_tensor(operands.input(0))[1], per_tensor(operands.output())[1]
    return Line(scale, np.float32(zo) - np.float32(count * zi) * scale, 0, is_away=False)


def _optimize_mean(params: QuantizedReduction, operands: Operands) -> QuantizedReduction:
    """Return a mean over height and width that adds both zero points in one integer at the end."""
    (si, zi), (so, zo) = per_tensor(operands.input(0)), per_tensor(operands.output())
    multiplier, shift = scalar_multiplier(float(si / (np.float32(params.reduction.count) * so)))
    bias = zo - int(round_half_away(np.float32(zi) * si / so))
    channels = operands.input(0).shape[3]
    away = (np.arange(channels) >= channels // 16 * 16).astype(np.int64)
    return replace(params, input_zero_point=0, output_zero_point=bias, multiplier=multiplier, shift=shift, away=away)


def _run_mean(params: QuantizedReduction, x: Array, *_axes: Array) -> tuple[Array, ...]:
    """Run MEAN: T[S, *shape] -> T[S, *shape without the axes, or with 1 there]."""
    shape, count = shape_of_result(params.reduction, x), params.reduction.count
    if count == 0:
        return (np.zeros(shape, params.dtype.storage),)
    total = _sum(params, x)
    if params.dtype in PLAIN_TYPES:
        quotient = np.abs(total) // count
        return (np.where(total < 0, -quotient, quotient).astype(params.dtype.storage).reshape(shape),)
    return (_rescale_total(params, total).reshape(shape),)


def _sum(params: QuantizedReduction, x: Array) -> Integers:
    axes = tuple(axis + 1 for axis in params.reduction.axes)
    if not axes:
        return x.astype(np.int64)
    largest = max(-params.dtype.minimum, params.dtype.maximum)
    if params.reduction.count * largest < FLOAT32_EXACT:
        return np.asarray(x.astype(np.float32).sum(axes), np.int64)
    return np.asarray(x.sum(axes, dtype=np.int64))


def _rescale_total(params: QuantizedReduction, total: Integers) -> Array:
    if params.line is not None:
        codes = params.line.apply(total)
    else:
        accumulator = wrap_int32(total - params.input_zero_point * params.reduction.count)
        codes = wrap_int32(_scale(params, accumulator) + params.output_zero_point)
    return np.clip(codes, params.dtype.minimum, params.dtype.maximum).astype(params.dtype.storage)


def _scale(params: QuantizedReduction, accumulator: Integers) -> Integers:
    if params.away is None:
        return mbq(accumulator, params.multiplier, params.shift)
    return multiply_by_quantized_multiplier_up(accumulator, params.multiplier, params.shift, params.away)


def _lower_product(node: Node, operands: Operands) -> QuantizedReduction | PlainReduction:
    """Decide the params of REDUCE_PROD.

    Raises:
        UnsupportedError: a type that TFLite's kernel does not take, or scales beyond the shifts that C++ defines.
        GraphError: a tensor without scale; an axis out of range, or computed at run time.
    """
    if not is_quantized(operands.input(0)):
        return lower_plain_reduction(node, operands, (*PLAIN_TYPES, DType.UINT8, DType.INT8, DType.INT16))
    dtype, si, zi, so, zo = quantized_ends(operands, (DType.INT8, DType.INT16))
    reduction = lower_reduction(node, operands)
    real = float(si) / math.pow(float(so), 1.0 / max(1, reduction.count))
    multiplier, shift = scalar_multiplier(real)
    if shift > LARGEST_SHIFT:
        raise UnsupportedError(
            f"scales {si} -> {so} of {reduction.count} factors give a multiplier of {real:.6g}; below 2^14 is defined"
        )
    return QuantizedReduction(reduction, dtype, zi, zo, multiplier, shift)


def _run_product(params: QuantizedReduction | PlainReduction, x: Array, *_axes: Array) -> tuple[Array, ...]:
    """Run REDUCE_PROD: T[S, *shape] -> T[S, *shape without the axes, or with 1 there]."""
    if isinstance(params, PlainReduction):
        return run_fold(params, x, operation=np.multiply)
    shape = shape_of_result(params.reduction, x)
    factors = rows_of(params.reduction, x).astype(np.int64) - params.input_zero_point
    if factors.size == 0:
        return (np.zeros(shape, x.dtype),)
    product = factors[0]
    for factor in factors[1:]:
        product = _rescale(params, product * factor)
    result = wrap_int32(_rescale(params, product) + params.output_zero_point)
    return (np.clip(result, params.dtype.minimum, params.dtype.maximum).astype(x.dtype).reshape(shape),)


def _rescale(params: QuantizedReduction, value: Array) -> Array:
    return multiply_by_quantized_multiplier_64(value, params.multiplier, params.shift)


KERNELS = {
    "sum": Kernel(_lower_sum, _run_sum,
        "y = clamp(MBQ(sum - z_i n) + z_o)",
        "TFLite kernels/reduce.cc (EvalSum), internal/reference/reduce.h (QuantizedMeanOrSum)"),
    "mean": Kernel(_lower_mean, _run_mean,
        "y = clamp(MBQ(sum - z_i n) + z_o), the division by n in the multiplier",
        "TFLite kernels/reduce.cc (EvalMean), internal/reference/reduce.h (QuantizedMeanOrSum, Mean)"),
    "reduce_prod": Kernel(_lower_product, _run_product,
        "p = MBQ64(p (x - z_i)) element by element; y = clamp(MBQ64(p) + z_o)",
        "TFLite kernels/reduce.cc (PrepareProd, EvalProd), internal/reference/reduce.h (QuantizedReduceProd)"),
}  # fmt: skip
