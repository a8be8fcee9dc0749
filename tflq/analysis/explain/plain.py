"""Fixed-point primitives once more, in Python's own integers and by the letter of the C code (docs/fixed_point.md).

The kernels have closed forms of their own for whole arrays; that both agree is what an explanation is worth.
"""

from __future__ import annotations

import math

from tflq.analysis.explain.steps import Trace

INT32_MAX = (1 << 31) - 1
INT32_MIN = -(1 << 31)


def wrap32(x: int) -> int:
    """The low 32 bits as two's complement."""
    return (x + (1 << 31)) % (1 << 32) - (1 << 31)


def truncated(p: int, q: int) -> int:
    """Return p / q cut toward zero, as C divides."""
    return abs(p) // q if p >= 0 else -(abs(p) // q)


def high_mul(a: int, b: int) -> int:
    """SRDHM of int32. Source: gemmlowp fixedpoint/fixedpoint.h, SaturatingRoundingDoublingHighMul."""
    if a == b == INT32_MIN:
        return INT32_MAX
    product = a * b
    nudge = 1 << 30 if product >= 0 else 1 - (1 << 30)
    return truncated(product + nudge, 1 << 31)


def high_mul_16(a: int, b: int) -> int:
    """SRDHM of int16, as `high_mul`."""
    if a == b == -(1 << 15):
        return (1 << 15) - 1
    product = a * b
    return truncated(product + (1 << 14 if product >= 0 else 1 - (1 << 14)), 1 << 15)


def divide_by_pot(x: int, exponent: int) -> int:
    """RDBP. Source: gemmlowp fixedpoint/fixedpoint.h, RoundingDivideByPOT."""
    mask = (1 << exponent) - 1
    threshold = (mask >> 1) + (1 if x < 0 else 0)
    return (x >> exponent) + (1 if (x & mask) > threshold else 0)


def shift_half_up(x: int, bits: int) -> int:
    """norm(x, n) = n == 0 ? x : (x + 2^(n-1)) >> n; n < 0 shifts to the left."""
    return x << -bits if bits <= 0 else (x + (1 << (bits - 1))) >> bits


def round_half_away(x: float) -> int:
    """Nearest whole number, ties away from zero."""
    whole = math.trunc(x)
    return whole + (1 if x > 0 else -1) if abs(x - whole) >= 0.5 else whole


def multiplied(trace: Trace, x: int, multiplier: int, shift: int, what: str = "") -> int:
    """Add the steps of MBQ(x, multiplier, shift): left shift, doubling high product, rounding right shift.

    Args:
        trace: gets the steps.
        x: int32.
        multiplier: int32.
        shift: positive is left.
        what: put in front of the labels, where one computation has several.
    """
    trace.add(f"{what}multiplier", "", multiplier)
    trace.add(f"{what}shift", "positive is left", shift)
    if shift > 0:
        x = trace.add(f"{what}shifted left", f"wrap32({x} << {shift})", wrap32(x << shift))
    high = trace.add(
        f"{what}high product",
        f"SRDHM({x}, {multiplier}) = ({x} * {multiplier} +- 2^30) / 2^31",
        high_mul(x, multiplier),
    )
    right = max(-shift, 0)
    return trace.add(
        f"{what}rounded", f"RDBP({high}, {right}) = {high} / 2^{right}, half away from 0", divide_by_pot(high, right)
    )


def multiplied_once(trace: Trace, x: int, multiplier: int, shift: int) -> int:
    """Add the steps of MBQ64(x, multiplier, shift): a multiplier of 15 bits, rounded once, half up."""
    short = (multiplier + (1 << 15)) >> 16 if multiplier < 0x7FFF0000 else 0x7FFF
    right = 15 - shift
    trace.add("multiplier", "", multiplier)
    trace.add("shift", "positive is left", shift)
    trace.add("multiplier of 15 bits", f"({multiplier} + 2^15) >> 16, at most 32767", short)
    value = wrap32((x * short + (1 << (right - 1))) >> right)
    return trace.add("rounded", f"({x} * {short} + 2^{right - 1}) >> {right}", value)


def multiplied_half_up(trace: Trace, x: int, multiplier: int, shift: int, what: str = "") -> int:
    """Add the steps of norm(x * multiplier, shift): ties up, a negative shift is one to the left; as `multiplied`."""
    trace.add(f"{what}multiplier", "M", multiplier)
    trace.add(f"{what}shift", "N, to the right", shift)
    product = trace.add(f"{what}product", f"{x} * {multiplier}", x * multiplier)
    return trace.add(f"{what}rounded", f"norm({product}, {shift}), ties up", shift_half_up(product, shift))
