"""Functions as PyTorch's vectors compute them, with which the Optimizer makes tables.

Source: docs/rules/aipu/values.md#tables.

Float32 throughout; if one float32 is too short, pairs of a high and a low part. `fused(a, b, c)` is a * b + c, rounded
once. On processors with AVX-512 and without the results are the same.

Source: SLEEF, src/libm/sleefsimdsp.c (the functions of at most one ulp) and src/common/df.h (pairs), as PyTorch's
ATen/cpu/vec calls them. Each is equal to PyTorch 2.13's on 2^18 random arguments.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tflq.arrays import Singles
from tflq.interpreter.accumulate.products import fused

Pair = tuple[Singles, Singles]

_LOG2_E = np.float32(1.442695040888963407)
_LN2 = (np.float32(-0.693145751953125), np.float32(-1.428606765330187045e-06))
_LN2_PAIR = (np.float32(0.69314718246459960938), np.float32(-1.904654323148236017e-09))
_ONE, _TWO = np.float32(1), np.float32(2)

_FAR = 300
"""An exponent behind which float32 is 0 or infinite."""


def _singles(*numbers: float) -> tuple[np.float32, ...]:
    return tuple(np.float32(number) for number in numbers)


_OF_EXP = _singles(
    0.000198527617612853646278381,
    0.00139304355252534151077271,
    0.00833336077630519866943359,
    0.0416664853692054748535156,
    0.166666671633720397949219,
    0.5,
)
_OF_EXP_PAIR = _singles(0.1980960224e-3, 0.1394256484e-2, 0.8333456703e-2, 0.4166637361e-1)
_SIXTH = np.float32(0.166666659414234244790680580464)
_OF_LOG = _singles(0.3027294874, 0.3996108174, 0.6666694880)
_OF_LOG_PAIR = _singles(0.240320354700088500976562, 0.285112679004669189453125, 0.400007992982864379882812)
_THIRDS = _singles(0.66666662693023681640625, 3.69183861259614332084311e-09)
_OF_POWER = _singles(
    0.00136324646882712841033936,
    0.00836596917361021041870117,
    0.0416710823774337768554688,
    0.166665524244308471679688,
    0.499999850988388061523438,
)
_LARGEST_EXP, _LOWEST_EXPM1, _FLAT_TANH = 100, np.float32(-16.635532333438687426013570), np.float32(8.664339742)
_LOWEST_EXP, _LINEAR_SOFTPLUS = -104, 20


def exponential(x: Singles) -> Singles:
    """Return e^x: q = RNE(x / ln 2), s = x - q ln 2 in two steps, 2^q * (1 + fused(s^2, u(s), s))."""
    q = np.rint((x * _LOG2_E).astype(np.float32)).astype(np.float32)
    s = fused(q, _LN2[1], fused(q, _LN2[0], x))
    powers = _scale_by_power(_sum(_ONE, fused(_product(s, s), _polynomial(s, _OF_EXP), s)), q)
    return np.where(x > _LARGEST_EXP, np.float32(np.inf), np.where(x < _LOWEST_EXP, np.float32(0), powers))


def expm1(x: Singles) -> Singles:
    """Return e^x - 1, of the exponential as a pair."""
    high, low = _add_in_full(_exponential_pair(x), np.full_like(x, -1))
    return np.where(x < _LOWEST_EXPM1, np.float32(-1), _sum(high, low))


def log1p(x: Singles) -> Singles:
    """Return ln(1 + x), 0 <= x: s = m / (2 + m) as a pair, e ln 2 + 2 s + s^3 u(s^2)."""
    above = _sum(_ONE, x)
    e = _exponent_of(above)
    t = np.ldexp(_ONE, (-e).astype(np.int64)).astype(np.float32)
    m = fused(x, t, _sum(t, -_ONE))
    quotient = _divide((m, np.zeros_like(m)), _pair_sum(_TWO, m))
    square = _product(quotient[0], quotient[0])
    total = _add_pairs(_scale_pair(_LN2_PAIR, e), (quotient[0] * _TWO, quotient[1] * _TWO))
    cubes = _product(_product(square, quotient[0]), _polynomial(square, _OF_LOG))
    return np.where(np.isinf(x), x, _sum(*_add(total, cubes)))


def tanh(x: Singles) -> Singles:
    """Return (E - 1 / E) / (E + 1 / E), E = e^|x| as a pair, with the sign of x."""
    large = _exponential_pair(np.abs(x))
    small = _reciprocal(large)
    result = _sum(*_divide(_add_pairs(large, (-small[0], -small[1])), _add_pairs(large, small)))
    return np.copysign(np.where(np.abs(x) > _FLAT_TANH, _ONE, result), x)


def power(x: Singles, exponent: float) -> Singles:
    """Return x^p: e^(p ln|x|), both as pairs; by products, roots and quotients if p is 2, 3, -2, 1/2, -1/2 or -1.

    The result for x < 0 has the sign of an odd p, and is NaN if p is not an integer.
    """
    if exponent in _PLAIN_POWERS:
        return _PLAIN_POWERS[exponent](x)
    p, is_whole = np.float32(exponent), float(np.float32(exponent)).is_integer()
    result = _power_of_pair(_scale_pair(_logarithm_pair(np.abs(x)), np.full_like(x, p)))
    result = np.where(np.isnan(result), np.float32(np.inf), result)
    result = np.where(x == 0, np.float32(np.inf if p < 0 else 0), result)
    below = np.float32((-1 if p % 2 else 1) if is_whole else np.nan)
    return _product(np.where(x == 1, _ONE, result), np.where(x < 0, below, _ONE).astype(np.float32))


def sigmoid(x: Singles) -> Singles:
    """Return 1 / (1 + e^-x), each step rounded."""
    result: Singles = _ONE / _sum(_ONE, exponential(-x))
    return result


def silu(x: Singles) -> Singles:
    """Return x / (1 + e^-x), each step rounded."""
    result: Singles = x / _sum(_ONE, exponential(-x))
    return result


def swish(x: Singles, alpha: float) -> Singles:
    """Return x * sigmoid(alpha x), each step rounded."""
    return _product(x, sigmoid(_product(x, np.float32(alpha))))


def softplus(x: Singles) -> Singles:
    """Return log1p(e^x); x above 20."""
    return np.where(x > _LINEAR_SOFTPLUS, x, log1p(exponential(x)))


def mish(x: Singles) -> Singles:
    """Return x * tanh(log1p(e^x)), each step rounded."""
    return _product(x, tanh(log1p(exponential(x))))


def elu(x: Singles, alpha: float, gamma: float = 1.0) -> Singles:
    """Return gamma * (x, below 0 alpha * expm1(x)), each step rounded."""
    bent = _product(expm1(np.minimum(x, 0).astype(np.float32)), np.float32(alpha))
    return _product(np.where(x > 0, x, bent), np.float32(gamma))


def softsign(x: Singles) -> Singles:
    """Return x / (1 + |x|), each step rounded."""
    result: Singles = x / _sum(_ONE, np.abs(x))
    return result


def _sum(a: Singles | np.float32, b: Singles | np.float32) -> Singles:
    result: Singles = np.add(a, b, dtype=np.float32)
    return result


def _product(a: Singles, b: Singles | np.float32) -> Singles:
    result: Singles = np.multiply(a, b, dtype=np.float32)
    return result


def _polynomial(x: Singles, coefficients: tuple[np.float32, ...]) -> Singles:
    """Return the polynomial by fused steps, the highest coefficient first."""
    result = np.full_like(x, coefficients[0])
    for one in coefficients[1:]:
        result = fused(result, x, one)
    return result


def _scale_by_power(x: Singles, q: Singles) -> Singles:
    result: Singles = np.ldexp(x, np.clip(q, -_FAR, _FAR).astype(np.int64))
    return result


def _exponent_of(x: Singles) -> Singles:
    """Return e with x * 2^-e in 0.75..1.5, as the vectors find it: the binary exponent of x / 0.75."""
    _, e = np.frexp(_product(x, np.float32(1.0 / 0.75)))
    return (e - 1).astype(np.float32)


def _exponential_pair(x: Singles) -> Pair:
    """Return e^x as a pair."""
    q = np.rint((x * _LOG2_E).astype(np.float32)).astype(np.float32)
    s = _add_in_full((x, np.zeros_like(x)), _product(q, _LN2[0]))
    s = _add_in_full(s, _product(q, _LN2[1]))
    t = _add_in_full(_scale_pair(s, _polynomial(s[0], _OF_EXP_PAIR)), np.full_like(x, _SIXTH))
    t = _add_in_full(_multiply(s, t), np.full_like(x, 0.5))
    square = _square(s)
    t = _add_pairs_in_full(s, _multiply(square, t))
    high = _sum(_ONE, t[0])
    low = _sum(_sum(_sum(_ONE, -high), t[0]), t[1])
    return _scale_by_power(high, q), _scale_by_power(low, q)


def _logarithm_pair(x: Singles) -> Pair:
    """Return ln x as a pair, x > 0: m in 0.75..1.5, e ln 2 + 2 s + s^3 u(s^2), s = (m - 1) / (m + 1)."""
    e = _exponent_of(x)
    m = _scale_by_power(x, -e)
    quotient = _divide(_error_of_sum(np.full_like(m, -1), m), _error_of_sum(np.ones_like(m), m))
    square = _square(quotient)
    bent = _add_pairs_in_full(
        _scale_pair(square, _polynomial(square[0], _OF_LOG_PAIR)),
        (np.full_like(m, _THIRDS[0]), np.full_like(m, _THIRDS[1])),
    )
    total = _add_pairs(_scale_pair(_LN2_PAIR, e), (quotient[0] * _TWO, quotient[1] * _TWO))
    return _add_pairs(total, _multiply(_multiply(square, quotient), bent))


def _power_of_pair(x: Pair) -> Singles:
    """Return e^x of a pair."""
    q = np.rint(_product(_sum(*x), _LOG2_E)).astype(np.float32)
    s = _add_in_full(_add_in_full(x, _product(q, _LN2[0])), _product(q, _LN2[1]))
    s = _pair_sum(*s)
    t = _add_pairs(s, _scale_pair(_square(s), _polynomial(s[0], _OF_POWER)))
    high = _sum(_ONE, t[0])
    low = _sum(_sum(_sum(_ONE, -high), t[0]), t[1])
    return _scale_by_power(_sum(high, low), q)


def _pair_sum(a: Singles | np.float32, b: Singles) -> Pair:
    """Return a + b, |a| >= |b|."""
    high = _sum(a, b)
    return high, _sum(_sum(a, -high), b)


def _add(a: Pair, b: Singles) -> Pair:
    """Return a + b, |a| >= |b|."""
    high = _sum(a[0], b)
    return high, _sum(_sum(_sum(a[0], -high), b), a[1])


def _add_in_full(a: Pair, b: Singles) -> Pair:
    """Return a + b, whichever is larger."""
    high, low = _error_of_sum(a[0], b)
    return high, _sum(low, a[1])


def _add_pairs(a: Pair, b: Pair) -> Pair:
    """Return a + b, |a| >= |b|."""
    high = _sum(a[0], b[0])
    return high, _sum(_sum(_sum(_sum(a[0], -high), b[0]), a[1]), b[1])


def _add_pairs_in_full(a: Pair, b: Pair) -> Pair:
    """Return a + b, whichever is larger."""
    high, low = _error_of_sum(a[0], b[0])
    return high, _sum(low, _sum(a[1], b[1]))


def _error_of_sum(a: Singles, b: Singles) -> Pair:
    """Return a + b and its rounding error."""
    high = _sum(a, b)
    v = _sum(high, -a)
    return high, _sum(_sum(a, -_sum(high, -v)), _sum(b, -v))


def _scale_pair(a: tuple[Singles | np.float32, Singles | np.float32], b: Singles) -> Pair:
    high = _product(b, a[0])
    return high, fused(b, a[1], fused(b, a[0], -high))


def _multiply(a: Pair, b: Pair) -> Pair:
    high = _product(a[0], b[0])
    return high, fused(a[0], b[1], fused(a[1], b[0], fused(a[0], b[0], -high)))


def _square(a: Pair) -> Pair:
    high = _product(a[0], a[0])
    return high, fused(_sum(a[0], a[0]), a[1], fused(a[0], a[0], -high))


def _reciprocal(a: Pair) -> Pair:
    high: Singles = _ONE / a[0]
    return high, _product(high, fused(-a[1], high, fused(-a[0], high, _ONE)))


def _divide(a: Pair, b: Pair) -> Pair:
    t: Singles = _ONE / b[0]
    high = _product(a[0], t)
    u = fused(t, a[0], -high)
    v = fused(-b[1], t, fused(-b[0], t, _ONE))
    return high, fused(high, v, fused(a[1], t, u))


_PLAIN_POWERS: dict[float, Callable[[Singles], Singles]] = {
    2.0: np.square,
    3.0: lambda x: _product(_product(x, x), x),
    -2.0: lambda x: _ONE / _product(x, x),
    0.5: np.sqrt,
    -0.5: lambda x: _ONE / np.sqrt(x),
    -1.0: lambda x: _ONE / x,
}
