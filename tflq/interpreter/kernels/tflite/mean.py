"""MEAN over some axes, in TFLite's integer arithmetic (docs/tflite.md).

int8, uint8, int16: y = clamp(MBQ(sum - z_i n, m', s - k) + z_o) with (m, s) of s_i / s_o in float64, k =
min(floor(log2 n), 32, 31 + s) and m' = trunc((m << k) / n): the division by n goes into the multiplier. The
accumulator is an int32 that wraps. int32, int64 without quantisation: int64 sum, divided toward zero.

Source: TFLite kernels/reduce.cc (EvalMean) and internal/reference/reduce.h (QuantizedMeanOrSum, Mean).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.numerics.fixed_point import Integers, quantize_multiplier, wrap_int32
from tflq.interpreter.numerics.fixed_point import multiply_by_quantized_multiplier as mbq
from tflq.interpreter.operands.checks import (
    EIGHT_BITS,
    per_tensor,
    require_same_type,
    require_type,
    require_zero_points_of_zero,
)
from tflq.interpreter.operands.reduction_axes import Reduction, lower_reduction, shape_of_result

FLOAT32_EXACT = 1 << 24
"""Integers up to here, and so all sums of integers that stay below, are exact in float32."""


@dataclass(frozen=True)
class Mean:
    """The integers of one MEAN.

    Attributes:
        reduction: axes and count.
        dtype: of input and output.
        input_zero_point: of the input.
        output_zero_point: of the output.
        multiplier: int32 with 1 / n in it; 0 where the tensors are not quantised.
        shift: positive is left.
    """

    reduction: Reduction
    dtype: DType
    input_zero_point: int = 0
    output_zero_point: int = 0
    multiplier: int = 0
    shift: int = 0


def lower(node: Node, operands: Operands) -> Mean:
    """Decide the integers of MEAN.

    Raises:
        UnsupportedError: a type that TFLite's kernel does not take.
        GraphError: an axis out of range, or computed at run time.
    """
    source, output = operands.input(0), operands.output()
    dtype = require_type(source, (*EIGHT_BITS, DType.INT16, DType.INT32, DType.INT64))
    require_same_type(source, output)
    reduction = lower_reduction(node, operands)
    if dtype in (DType.INT32, DType.INT64):
        return Mean(reduction, dtype)
    if dtype is DType.INT16:
        require_zero_points_of_zero(source, output)
    (si, zi), (so, zo) = per_tensor(source), per_tensor(output)
    wide, exponent = (int(part) for part in quantize_multiplier(float(si) / float(so)))
    count = max(1, reduction.count)
    k = min(count.bit_length() - 1, 32, 31 + exponent)
    return Mean(reduction, dtype, zi, zo, (wide << k) // count, exponent - k)


def run(params: Mean, x: Array, *_axes: Array) -> tuple[Array, ...]:
    """Run MEAN: T[S, *shape] -> T[S, *shape without the axes, or with 1 there]."""
    shape = shape_of_result(params.reduction, x)
    if params.reduction.count == 0:
        return (np.zeros(shape, params.dtype.storage),)
    total = _sum(params, x)
    if params.dtype in (DType.INT32, DType.INT64):
        count = params.reduction.count
        quotient = np.abs(total) // count
        return (np.where(total < 0, -quotient, quotient).astype(params.dtype.storage).reshape(shape),)
    accumulator = wrap_int32(total - params.input_zero_point * params.reduction.count)
    rescaled = mbq(accumulator, params.multiplier, params.shift) + params.output_zero_point
    result = np.clip(wrap_int32(rescaled), params.dtype.minimum, params.dtype.maximum)
    return (result.astype(params.dtype.storage).reshape(shape),)


def _sum(params: Mean, x: Array) -> Integers:
    axes = tuple(axis + 1 for axis in params.reduction.axes)
    if not axes:
        return x.astype(np.int64)
    largest = max(-params.dtype.minimum, params.dtype.maximum)
    if params.reduction.count * largest < FLOAT32_EXACT:
        return np.asarray(x.astype(np.float32).sum(axes), np.int64)
    return np.asarray(x.sum(axes, dtype=np.int64))
