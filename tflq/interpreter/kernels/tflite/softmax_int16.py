"""SOFTMAX of int16: two tables of 513 points with straight lines between them (docs/tflite.md).

d = x - max(row); e = exp_table(clamp(MBQ(d, m, s) + 32767)), where -65535..0 stands for -10..0; sum in 15 fraction
bits; u = ((sum << (z - 1)) + 2^13) >> 14 with z leading zeros; r = reciprocal_table(u - 2^15 - 2^16); y = clamp((e r +
2^(30 - z)) >> (31 - z), 0, 32767). (m, s) is the multiplier of f32(s_i beta) / (10 / 65535).

Source: TFLite kernels/activations.cc (SoftmaxPrepare) and internal/reference/softmax.h (SoftmaxInt16).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tflq.errors import UnsupportedError
from tflq.graph import Array, Tensor
from tflq.interpreter.numerics.fixed_point import multiply_by_quantized_multiplier as mbq
from tflq.interpreter.numerics.fixed_point import quantize_multiplier
from tflq.interpreter.numerics.gemmlowp import bit_length
from tflq.interpreter.numerics.lookup_tables import look_up_513, lut513
from tflq.interpreter.operands.checks import per_tensor, require_zero_points_of_zero

_RANGE = 65535


@dataclass(frozen=True, eq=False)
class SoftmaxInt16:
    """The integers of one SOFTMAX of int16.

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


def lower_int16(source: Tensor, beta: float) -> SoftmaxInt16:
    """Decide multiplier and tables.

    Raises:
        UnsupportedError: a zero point other than 0, or a beta that is no positive number.
    """
    require_zero_points_of_zero(source)
    scale, _ = per_tensor(source)
    real = float(scale * np.float32(beta)) / (10.0 / 65535.0)
    if not 0.0 <= real < np.inf:
        raise UnsupportedError(f"beta {beta} with input scale {scale}; beta * scale must be finite and not negative")
    multiplier, shift = (int(part) for part in quantize_multiplier(real))
    if shift > 30:
        raise UnsupportedError(f"beta {beta} with input scale {scale}: the multiplier does not fit int32")
    exp_table = lut513(np.exp, 10.0 / _RANGE, 32767, 2.0 / _RANGE)
    reciprocal_table = lut513(lambda x: 1.0 / (1.0 + x), 1.0 / _RANGE, -32768, 2.0 / _RANGE)
    scaled = mbq(-np.arange(65536, dtype=np.int64), multiplier, shift)
    exponentials = look_up_513(exp_table, np.clip(scaled + 32767, -32768, 32767)).astype(np.int16)
    return SoftmaxInt16(multiplier, shift, exp_table, reciprocal_table, exponentials)


def run_int16(params: SoftmaxInt16, x: Array) -> Array:
    """Run it: int16[S, ..., C] -> int16[S, ..., C]."""
    below = x.max(-1, keepdims=True).astype(np.int32) - x
    e = np.take(params.exponentials, below).astype(np.int64)
    total = e.sum(-1, keepdims=True)
    zeros = 32 - bit_length(total)
    shifted = ((total << (zeros - 1)) + (1 << 13)) >> 14
    centred = np.clip(shifted - ((1 << 15) + (1 << 16)), -32768, 32767)
    r = look_up_513(params.reciprocal_table, centred)
    right = 31 - zeros
    result = (e * r + (np.int64(1) << (right - 1))) >> right
    return np.asarray(np.clip(result, 0, 32767), np.int16)
