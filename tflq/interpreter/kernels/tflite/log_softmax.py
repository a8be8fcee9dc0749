"""LOG_SOFTMAX over the last axis, in TFLite's integer arithmetic (docs/tflite.md). int8, uint8.

d = x - max of the row; t = SRDHM(d << s, m) with 5 integer bits, (m, s) of min(s_i 2^26, 2^31 - 1) in float64; the sum
of RDBP(exp(t), 12) over d >= -floor(31 * 2^26 / 2^s) has 12 integer bits; l = ln(sum) (integer_functions.py);
y = clamp(RDBP(t - l, 22) + highest quantized value). Where d is at or below max(-floor(...) - 1, MBQ(l - 2^31, of
2^(31-s) / m)) y is the lowest quantized value. The output has scale 1/16 and zero point 127 or 255.

Source: TFLite kernels/activations.cc (LogSoftmaxPrepare), internal/reference/integer_ops/log_softmax.h,
internal/reference/log_softmax.h.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.arrays import Integers
from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.plain.elementwise import lower_unary
from tflq.interpreter.kernels.tflite.softmax import DIFFERENCE_BITS, SUM_BITS, Addends, addends_of
from tflq.interpreter.numerics.fixed_point import (
    INT32_MIN,
    multiply_by_quantized_multiplier,
    quantize_multiplier_smaller_than_one,
    rounding_divide_by_pot,
    wrap_int32,
)
from tflq.interpreter.numerics.integer_functions import natural_logarithm
from tflq.interpreter.operands.checks import EIGHT_BITS, per_tensor

OUTPUT_BITS = 4


@dataclass(frozen=True, eq=False)
class LogSoftmax(Addends):
    """The params of one LOG_SOFTMAX.

    Attributes:
        reverse_multiplier: int32, from 5 integer bits back to differences.
        reverse_shift: 0 or negative.
        scaled: int64[256]: t of the differences 0, -1, ..., -255.
        dtype: of input and output.
    """

    reverse_multiplier: int
    reverse_shift: int
    scaled: Integers
    dtype: DType


def lower(node: Node, operands: Operands) -> LogSoftmax:  # noqa: ARG001
    """Decide multipliers and tables.

    Raises:
        UnsupportedError: a type or an output quantisation that TFLite's kernel does not take, or an input scale at
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
    real = min(float(per_tensor(source)[0]) * (1 << (31 - DIFFERENCE_BITS)), 2.0**31 - 1)
    found, _ = addends_of(real)
    reverse, reverse_shift = quantize_multiplier_smaller_than_one(2.0 ** (31 - found.left_shift) / found.multiplier)
    difference = -np.arange(256, dtype=np.int64)
    scaled = multiply_by_quantized_multiplier(difference, found.multiplier, found.left_shift)
    return LogSoftmax(
        **vars(found), reverse_multiplier=reverse, reverse_shift=reverse_shift, scaled=scaled, dtype=dtype
    )


def run(params: LogSoftmax, x: Array) -> tuple[Array, ...]:
    """Run LOG_SOFTMAX: T[S, ..., C] -> T[S, ..., C].

    Raises:
        UnsupportedError: the exponentials of a row sum up to 4096 or more, where TFLite's int32 overflows.
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
