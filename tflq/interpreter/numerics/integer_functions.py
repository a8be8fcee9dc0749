"""ln(x), 1 / sqrt(n) and the sigmoid's table as TFLite's integer kernels compute them (docs/rules/fixed_point.md).

ln(x) of a fixed-point number, as LOG_SOFTMAX uses it (docs/rules/fixed_point.md).

A value with n integer bits denotes raw * 2^(n - 31). Products are SRDHM: integer bits add up.

The table that LOGISTIC and TANH of int16 interpolate in: about 65536 / (1 + exp(-i / 24)) for i = 0..255.

There is no formula for it: 44 of its 256 entries are one above the rounded value. The entries are facts about TFLite
(kernels/internal/common.h, sigmoid_table_uint16) and can be read out of any TFLite: TANH of int16 with input scale 1/48
returns entry i less 32768 for code i, and the tests do that.
"""

from __future__ import annotations

import numpy as np

from tflq.arrays import Integers
from tflq.interpreter.numerics.fixed_point import INT32_MAX, rounding_divide_by_pot, saturate, wrap_int32
from tflq.interpreter.numerics.fixed_point import saturating_rounding_doubling_high_mul as srdhm
from tflq.interpreter.numerics.gemmlowp import bit_length, one_over_one_plus_x
from tflq.interpreter.recording.primitive import primitive

_LN_2 = 1488522236
_FOURTH_ROOT_OF_HALF = 1805811301
_SQRT_HALF = 1518500250
_ALPHA_N = 117049297  # 11/240 * 2^(1/4)
_ALPHA_D = 127690142  # 1/20 * 2^(1/4)
_ALPHA_I = 1057819769  # 2 / 2^(1/4) - 2^(1/4)
_ALPHA_F = 638450708  # 1/4 * 2^(1/4)
_ACCUMULATOR_BITS = 6
_QUARTER = 1 << 23  # six integer bits


@primitive("logarithm", "ln({x}) with 5 integer bits; {x} has {integer_bits}")
def natural_logarithm(x: Integers, integer_bits: int) -> Integers:
    """Return ln(x) with 5 integer bits for x >= 1.

    x = r 2^e with r near 2^(-1/4), chosen from two ways to normalize; ln(r) is a rational function of
    r - 2^(-1/4), ln(x) = e ln(2) + ln(r).

    Args:
        x: raw, positive, of 31 bits.
        integer_bits: Number of integer bits of x.

    Source: TFLite kernels/internal/common.h, log_x_for_x_greater_than_or_equal_to_1_impl.
    """
    r, exponent = _normalize(x, integer_bits)
    total = r + _FOURTH_ROOT_OF_HALF
    p = (total + 1) >> 1  # rounded half sum; the sum is positive
    q = wrap_int32(2 * (r - _FOURTH_ROOT_OF_HALF))
    square = srdhm(q, q)
    numerator = srdhm(q, r) + srdhm(srdhm(q, square), _ALPHA_N)
    denominator = srdhm(p, _ALPHA_I + q + srdhm(_ALPHA_D, square)) + srdhm(_ALPHA_F, q)
    quotient = srdhm(rounding_divide_by_pot(numerator, _ACCUMULATOR_BITS), one_over_one_plus_x(denominator))
    return saturate((srdhm(exponent, _LN_2) + quotient) << 1, 32)


def _normalize(x: Integers, integer_bits: int) -> tuple[Integers, Integers]:
    """Return r without integer bits and the exponent with six: one way keeps x, the other takes x sqrt(1/2)."""
    headroom = 32 - bit_length(x)
    first = saturate(srdhm(saturate(x << (headroom - 1), 32), _SQRT_HALF) << 1, 32)
    first_exponent = saturate(saturate((integer_bits - headroom) << 25, 32) + _QUARTER, 32)
    headroom = 31 - bit_length(srdhm(x, _SQRT_HALF))
    second = saturate(x << headroom, 32)
    second_exponent = saturate(saturate((integer_bits - headroom) << 25, 32) - _QUARTER, 32)
    return np.minimum(first, second), np.maximum(first_exponent, second_exponent)


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
    """X = x (3 - n x^2) / 2, five times; three integer bits, cubes are rescaled from nine by a saturating shift."""
    half = rounding_divide_by_pot(n, 1)
    x = np.full(n.shape, 1 << 28, np.int64)
    for _ in range(5):
        cube = saturate(srdhm(srdhm(x, x), x) << 6, 32)
        x = saturate(wrap_int32(srdhm(_THREE_HALVES, x) - srdhm(half, cube)) << 3, 32)
    return x


# fmt: off
SIGMOID_TABLE = np.array(
    [
        32768, 33451, 34133, 34813, 35493, 36169, 36843, 37513, 38180, 38841, 39498, 40149, 40794, 41432, 42064, 42688,
        43304, 43912, 44511, 45102, 45683, 46255, 46817, 47369, 47911, 48443, 48964, 49475, 49975, 50464, 50942, 51409,
        51865, 52311, 52745, 53169, 53581, 53983, 54374, 54755, 55125, 55485, 55834, 56174, 56503, 56823, 57133, 57433,
        57724, 58007, 58280, 58544, 58800, 59048, 59288, 59519, 59743, 59959, 60168, 60370, 60565, 60753, 60935, 61110,
        61279, 61441, 61599, 61750, 61896, 62036, 62172, 62302, 62428, 62549, 62666, 62778, 62886, 62990, 63090, 63186,
        63279, 63368, 63454, 63536, 63615, 63691, 63765, 63835, 63903, 63968, 64030, 64090, 64148, 64204, 64257, 64308,
        64357, 64405, 64450, 64494, 64536, 64576, 64614, 64652, 64687, 64721, 64754, 64786, 64816, 64845, 64873, 64900,
        64926, 64950, 64974, 64997, 65019, 65039, 65060, 65079, 65097, 65115, 65132, 65149, 65164, 65179, 65194, 65208,
        65221, 65234, 65246, 65258, 65269, 65280, 65291, 65301, 65310, 65319, 65328, 65337, 65345, 65352, 65360, 65367,
        65374, 65381, 65387, 65393, 65399, 65404, 65410, 65415, 65420, 65425, 65429, 65433, 65438, 65442, 65445, 65449,
        65453, 65456, 65459, 65462, 65465, 65468, 65471, 65474, 65476, 65479, 65481, 65483, 65485, 65488, 65489, 65491,
        65493, 65495, 65497, 65498, 65500, 65501, 65503, 65504, 65505, 65507, 65508, 65509, 65510, 65511, 65512, 65513,
        65514, 65515, 65516, 65517, 65517, 65518, 65519, 65520, 65520, 65521, 65522, 65522, 65523, 65523, 65524, 65524,
        65525, 65525, 65526, 65526, 65526, 65527, 65527, 65528, 65528, 65528, 65529, 65529, 65529, 65529, 65530, 65530,
        65530, 65530, 65531, 65531, 65531, 65531, 65531, 65532, 65532, 65532, 65532, 65532, 65532, 65533, 65533, 65533,
        65533, 65533, 65533, 65533, 65533, 65534, 65534, 65534, 65534, 65534, 65534, 65534, 65534, 65534, 65534, 65535,
    ],
    np.int64,
)
# fmt: on
SIGMOID_TABLE.setflags(write=False)
