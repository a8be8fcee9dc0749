"""Logistic and tanh of the gemmlowp library on int16, as tables over all inputs (docs/rules/fixed_point.md).

A value with n integer bits denotes raw * 2^(n - 15); results have none. The steps follow gemmlowp.py, with its
constants rounded to 16 bits, int16 registers that wrap, and one sum that saturates.

Source: gemmlowp fixedpoint/fixedpoint.h (logistic, tanh, exp_on_negative_values), for std::int16_t.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray

from tflq.arrays import Integers
from tflq.graph import DType
from tflq.interpreter.numerics import gemmlowp
from tflq.interpreter.numerics.fixed_point import rounding_divide_by_pot, saturate, wrap_int16
from tflq.interpreter.numerics.fixed_point import saturating_rounding_doubling_high_mul as srdhm
from tflq.interpreter.numerics.lookup_tables import all_codes
from tflq.interpreter.recording.primitive import note_table, primitive

Table = NDArray[np.int16]

_ONE = (1 << 15) - 1
_ONE_OF_TWO_BITS = 1 << 13


def _constant(raw: int) -> int:
    return int(rounding_divide_by_pot(raw, 16))


_EXP_OF_MINUS_ONE_EIGHTH = _constant(gemmlowp.EXP_OF_MINUS_ONE_EIGHTH)
_ONE_THIRD = _constant(gemmlowp.ONE_THIRD)
_NEWTON_START, _NEWTON_SLOPE = _constant(gemmlowp.NEWTON_START), _constant(gemmlowp.NEWTON_SLOPE)
_EXP_OF_MINUS_POWER_OF_TWO = {n: _constant(raw) for n, raw in gemmlowp.EXP_OF_MINUS_POWER_OF_TWO.items()}


def logistic_table(integer_bits: int) -> Table:
    """Return 1 / (1 + exp(-x)) for each int16 x with `integer_bits` integer bits, by raw bits: int16[65536]."""
    return _noted(logistic_of_int16, integer_bits)


def tanh_table(integer_bits: int) -> Table:
    """Return tanh(x) for each int16 x with `integer_bits` integer bits, by raw bits: int16[65536]."""
    return _noted(tanh_of_int16, integer_bits)


@primitive("logistic", "logistic of {x}, which has {integer_bits} integer bits")
def logistic_of_int16(x: Integers, integer_bits: int) -> Integers:
    """1 / (1 + exp(-x)) of int16 with `integer_bits` integer bits."""
    positive = saturate(_newton(_half_sum(_exp_on_negative_values(-np.abs(x), integer_bits))) << 1, 16)
    return np.where(x == 0, 1 << 14, np.where(x > 0, positive, _ONE - positive))


@primitive("tanh", "tanh of {x}, which has {integer_bits} integer bits")
def tanh_of_int16(x: Integers, integer_bits: int) -> Integers:
    """Tanh(x) of int16 with `integer_bits` integer bits."""
    quotient = _newton(_half_sum(_exp_on_negative_values(-np.abs(x), integer_bits + 1)))
    positive = saturate((quotient - _ONE_OF_TWO_BITS) << 2, 16)
    return np.asarray(np.sign(x) * positive, np.int64)


def _noted(function: Callable[[Integers, int], Integers], integer_bits: int) -> Table:
    table = _tabulated(function, integer_bits)
    note_table(table, lambda x: function(x, integer_bits))
    return table


@cache
def _tabulated(function: Callable[[Integers, int], Integers], integer_bits: int) -> Table:
    table = function(all_codes(DType.INT16), integer_bits).astype(np.int16)
    table.setflags(write=False)
    return table


def _exp_on_negative_values(a: Integers, integer_bits: int) -> Integers:
    """exp(a) for a <= 0; a[...] of `integer_bits` integer bits, the result of none."""
    fraction_bits = 15 - integer_bits
    quarter = 1 << (fraction_bits - 2)
    remainder = (a & (quarter - 1)) - quarter
    result = _exp_between_minus_quarter_and_zero(saturate(remainder << integer_bits, 16))
    powers = remainder - a
    for exponent, constant in _EXP_OF_MINUS_POWER_OF_TWO.items():
        if integer_bits > exponent:
            has_power = (powers >> (fraction_bits + exponent)) & 1
            result = np.where(has_power, srdhm(result, constant, 16), result)
    if integer_bits > 5:
        result = np.where(a < -(32 << fraction_bits), 0, result)
    return np.where(a == 0, _ONE, result)


def _exp_between_minus_quarter_and_zero(a: Integers) -> Integers:
    x = a + (1 << 12)
    x2 = srdhm(x, x, 16)
    x3 = srdhm(x2, x, 16)
    x4 = srdhm(x2, x2, 16)
    cubic = srdhm(rounding_divide_by_pot(x4, 2) + x3, _ONE_THIRD, 16) + x2
    polynomial = x + rounding_divide_by_pot(cubic, 1)
    return saturate(_EXP_OF_MINUS_ONE_EIGHTH + srdhm(_EXP_OF_MINUS_ONE_EIGHTH, polynomial, 16), 16)


def _half_sum(a: Integers) -> Integers:
    return (a + _ONE + 1) >> 1


def _newton(half_denominator: Integers) -> Integers:
    """1 / half_denominator with two integer bits: three steps from 48/17 - 32/17 d; int16 registers wrap."""
    x = wrap_int16(_NEWTON_START + srdhm(half_denominator, _NEWTON_SLOPE, 16))
    for _ in range(3):
        rest = wrap_int16(_ONE_OF_TWO_BITS - srdhm(half_denominator, x, 16))
        x = wrap_int16(x + saturate(srdhm(x, rest, 16) << 2, 16))
    return x
