"""Real functions computed in float64 and rounded once to float32; and tanh step by step as the C library has it.

TFLite's are the host's float32 ones, which round correctly in nearly all cases; the possible difference is stated by
each operator.

tanh of float32 step by step as the C library's tanhf, for kernels that cut it to integers.

tanh|x| = 1 - 2 / (e + 2) with e = expm1(2|x|) from 1 on, -e / (e + 2) with e = expm1(-2|x|) below; expm1 by reduction
to half of ln 2 and a polynomial of degree 5 in x^2/2. Every step is rounded to float32.

This is tanhf of Sun's fdlibm, which glibc has up to version 2.40; 2.41 rounds correctly, which differs in the last bit
of 7 % of the results. Tested bit for bit against the library for all multiples of 2^-12 and 2^-15 of 16 bits.

Source: fdlibm s_tanh.c, s_expm1.c; in glibc sysdeps/ieee754/flt-32/s_tanhf.c, s_expm1f.c.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tflq.arrays import Doubles, Reals, Singles
from tflq.graph import Array
from tflq.interpreter.recording.primitive import primitive

SQRT_HALF = np.float32(math.sqrt(0.5))
SQRT_2_OVER_PI = np.float32(math.sqrt(2 / math.pi))


def rounded_once(function: Callable[[Doubles], Doubles]) -> Callable[[Reals], Singles]:
    """Return a float32 function that is computed in float64."""
    name = getattr(function, "__name__", "function").strip("_")

    @primitive(name, f"float32({name}({{x}}))")
    def compute(x: Reals) -> Singles:
        with np.errstate(all="ignore"):
            return np.asarray(function(x.astype(np.float64)).astype(np.float32))

    return compute


def _erfc(x: Doubles) -> Doubles:
    return np.fromiter(map(math.erfc, x.ravel().tolist()), np.float64, x.size).reshape(x.shape)


@primitive("erf", "erf({x})")
def erf(x: Doubles) -> Doubles:
    """The error function of float64, by the C library."""
    return np.fromiter(map(math.erf, x.ravel().tolist()), np.float64, x.size).reshape(x.shape)


exp = rounded_once(np.exp)
log = rounded_once(np.log)
expm1 = rounded_once(np.expm1)
tanh = rounded_once(np.tanh)
erfc = rounded_once(_erfc)
sin = rounded_once(np.sin)
cos = rounded_once(np.cos)


@primitive("power", "float32({x} ** {y})")
def power(x: Array, y: Array | np.float32) -> Singles:
    """x^y of float32, elementwise with broadcasting."""
    with np.errstate(all="ignore"):
        return np.asarray(np.power(x.astype(np.float64), y.astype(np.float64)).astype(np.float32))


def gelu(x: Reals, approximate: bool) -> Singles:
    """X Phi(x) of float32: f32(x/2) erfc(f32(-x sqrt(1/2))), or the approximation by tanh.

    Approximate: f32(x/2) (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))); each operation in float32.
    """
    value = x.astype(np.float32)
    with np.errstate(all="ignore"):
        half = np.float32(0.5) * value
        if not approximate:
            return np.asarray(half * erfc(value * -SQRT_HALF))
        inner = value + np.float32(0.044715) * value * value * value
        return np.asarray(half * (np.float32(1) + tanh(SQRT_2_OVER_PI * inner)))


_F = np.float32
_LN2_HIGH, _LN2_LOW, _INVERSE_LN2 = _F(6.9313812256e-01), _F(9.0580006145e-06), _F(1.4426950216)
_HALF_LN2, _THREE_HALF_LN2 = _F(0.34657359), _F(1.0397208)
_COEFFICIENTS = tuple(
    _F(q) for q in (-2.0109921195e-07, 4.0082177293e-06, -7.9365076090e-05, 1.5873016091e-03, -3.3333335072e-02)
)
_REACH = _F(22)


@primitive("tanh", "tanh({x}), as the C library's tanhf")
def tanhf(x: Singles) -> Singles:
    """Return tanh(x), within +-1; beyond +-22 it is +-1."""
    size: Singles = np.minimum(np.abs(x), _REACH)
    large = size >= 1
    e = expm1f(np.where(large, _F(2) * size, _F(-2) * size))
    result: Singles = np.where(large, _F(1) - _F(2) / (e + _F(2)), -e / (e + _F(2)))
    return np.copysign(result, x)


@primitive("expm1", "exp({x}) - 1, as the C library's expm1f")
def expm1f(x: Singles) -> Singles:
    """Return e^x - 1 for -44 <= x <= 44: x = k ln 2 + r, and e^r - 1 by a rational function."""
    nearest = np.trunc(_INVERSE_LN2 * x + np.copysign(_F(0.5), x))
    power = np.where(np.abs(x) > _HALF_LN2, np.where(np.abs(x) < _THREE_HALF_LN2, np.sign(x), nearest), _F(0))
    high, low = x - power * _LN2_HIGH, power * _LN2_LOW
    rest: Singles = high - low
    lost: Singles = (high - rest) - low
    half = _F(0.5) * rest
    square = rest * half
    total: Singles = np.full_like(square, _COEFFICIENTS[0])
    for coefficient in _COEFFICIENTS[1:]:
        total = total * square + coefficient
    series: Singles = _F(1) + square * total
    bend: Singles = _F(3) - series * half
    error: Singles = square * ((series - bend) / (_F(6) - rest * bend))
    corrected: Singles = (rest * (error - lost) - lost) - square
    return _scaled_up(power.astype(np.int32), rest, corrected, rest - (rest * error - square))


def _scaled_up(power: NDArray[np.int32], rest: Singles, error: Singles, unscaled: Singles) -> Singles:
    """Return 2^power (1 + rest - error) - 1, in the order of steps that keeps most digits for each power."""
    up, down = np.ldexp(_F(1), power), np.ldexp(_F(1), -power)
    cases = {
        0: unscaled,
        -1: _F(0.5) * (rest - error) - _F(0.5),
        1: np.where(rest < _F(-0.25), _F(-2) * (error - (rest + _F(0.5))), _F(1) + _F(2) * (rest - error)),
    }
    beyond = np.where(
        power <= -2,
        (_F(1) - (error - rest)) * up - _F(1),
        np.where(power < 23, ((_F(1) - down) - (error - rest)) * up, ((rest - (error + down)) + _F(1)) * up),
    )
    return np.asarray(np.select([power == k for k in cases], list(cases.values()), beyond), np.float32)
