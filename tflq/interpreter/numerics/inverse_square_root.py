"""1 / sqrt(n) of an integer as a fixed-point multiplier, as RSQRT and L2_NORMALIZATION use it (docs/fixed_point.md)."""

from __future__ import annotations

import numpy as np

from tflq.interpreter.numerics.fixed_point import INT32_MAX, Integers, rounding_divide_by_pot, saturate, wrap_int32
from tflq.interpreter.numerics.fixed_point import saturating_rounding_doubling_high_mul as srdhm
from tflq.interpreter.numerics.gemmlowp import bit_length
from tflq.interpreter.recording.primitive import primitive

_HALF_SQRT_2 = 1518500250  # no integer bits
_THREE_HALVES = (1 << 28) + (1 << 27)  # three integer bits


@primitive("inverse square root", "1 / sqrt({n}): multiplier and shift")
def inverse_square_root(n: Integers) -> tuple[Integers, Integers]:
    """Write 1 / sqrt(n) as (multiplier, shift): multiplier * 2^(shift - 31), shift 0 or negative.

    n is brought to [2^27, 2^29) by quarters (which truncate) or by left shifts of two bits; five Newton steps from 1
    with three integer bits follow; the result is multiplied by sqrt(1/2). 0 and 1 give (2^31 - 1, 0).

    Args:
        n: 0..2^31 - 1.

    Source: TFLite kernels/internal/common.h, GetInvSqrtQuantizedMultiplierExp.
    """
    value = np.maximum(n, 2)
    right = np.maximum((bit_length(value) - 28) // 2, 0)  # quarters until below 2^29
    value = value >> 2 * right
    pairs = (31 - bit_length(value)) // 2 - 1
    value = value << 2 * pairs
    shift = 11 + right - pairs
    root = srdhm(_newton(value >> 1), _HALF_SQRT_2)
    multiplier = wrap_int32(root << np.maximum(-shift, 0))
    small = np.asarray(n) <= 1
    return np.where(small, INT32_MAX, multiplier), np.where(small, 0, -np.maximum(shift, 0))


def _newton(n: Integers) -> Integers:
    """X = x (3 - n x^2) / 2, five times; three integer bits, cubes come back from nine by a saturating shift."""
    half = rounding_divide_by_pot(n, 1)
    x = np.full(n.shape, 1 << 28, np.int64)
    for _ in range(5):
        cube = saturate(srdhm(srdhm(x, x), x) << 6, 32)
        x = saturate(wrap_int32(srdhm(_THREE_HALVES, x) - srdhm(half, cube)) << 3, 32)
    return x
