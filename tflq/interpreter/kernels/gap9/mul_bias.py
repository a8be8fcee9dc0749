"""MulBias: a real ratio of scales as M * 2^-N with an 8-bit M (docs/rules/gap9/filters.md#mulbias)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from tflq.arrays import Integers, Reals
from tflq.errors import UnsupportedError
from tflq.interpreter.numerics.fixed_point import norm

MULTIPLIER_BITS = 8
LARGEST_USUAL_SHIFT = 24
LARGEST_SHIFT = 31
"""NE16's shift field has 5 bits."""


@dataclass(frozen=True, eq=False)
class MulBias:
    """ratio ~ multiplier * 2^-shift.

    Attributes:
        multiplier: M, int64[1] or int64[C], 1..255, odd unless N is 0.
        shift: N, int64[1] or int64[C], 0..31; without the bits of a pre-normalization.
        ratio: float64[1] or float64[C], the approximated ratios.
    """

    multiplier: Integers
    shift: Integers
    ratio: Reals

    def times(self, x: ArrayLike) -> Integers:
        """norm(x * M, N); one M and N for all, or one for each channel along the last axis."""
        return norm(np.asarray(x, np.int64) * self.multiplier, self.shift)


def multiplier_bits(reduction: int, bias: ArrayLike) -> Integers:
    """Bits that M may have so that accumulator * M stays in 32 bits, as the vendor estimates them.

    31 - max(ceil(log2 K) + 14, ceil(log2|B|)); a zero bias is ignored. 8 are used if more are available.

    Args:
        reduction: K, products per accumulator (input channels of the group * kernel height * width).
        bias: int64[C], quantized bias without the folded zero points.
    """
    products = int(np.ceil(np.log2(max(reduction, 1)))) + 14
    magnitude = np.abs(np.asarray(bias, np.float64))
    biases = np.ceil(np.log2(np.where(magnitude > 0, magnitude, 1.0)))
    return np.asarray(31 - np.maximum(products, np.where(magnitude > 0, biases, 0.0)), np.int64)


def mul_bias(ratio: ArrayLike, available_bits: ArrayLike = MULTIPLIER_BITS) -> MulBias:
    """Write ratios of scales as M * 2^-N.

    f, e = frexp(ratio), f rounded to float32; bits = min(8, available); then M = floor(f * 2^bits + 0.5), N = bits - e,
    with one bit less again and again while (N > 24 or M is even) and N > 0 and bits > 0; so M never is 2^available.
    So M is odd unless N is 0. If all ratios are exactly 1, M = 1, N = 0.

    Args:
        ratio: positive, one or one for each channel.
        available_bits: Result of `multiplier_bits`, or 8.

    Raises:
        UnsupportedError: a ratio that is not positive and finite; so large that N would be negative (256 or more if M
            has 8 bits); so small that N would be above 31; or no bit left for M.
    """
    ratios = np.atleast_1d(np.asarray(ratio, np.float64))
    bits = np.broadcast_to(np.asarray(available_bits, np.int64), ratios.shape)
    _refuse(ratios, ~(np.isfinite(ratios) & (ratios > 0)), "a ratio of scales must be positive and finite")
    _refuse(ratios, ratios >= 256, "a ratio of scales must be below 256: widen the range of the output")
    if np.all(ratios == 1.0):
        ones = np.ones(1, np.int64)
        return MulBias(ones, np.zeros(1, np.int64), ratios)
    pairs = np.array([_one(float(r), min(MULTIPLIER_BITS, int(b))) for r, b in zip(ratios, bits, strict=True)])
    multiplier, shift = pairs[:, 0], pairs[:, 1]
    _refuse(ratios, multiplier == 0, "no bit is left for the multiplier: the reduction or the bias is too large")
    _refuse(ratios, shift < 0, "the multiplier has too few bits left for it: widen the range of the output")
    _refuse(
        ratios,
        shift > LARGEST_SHIFT,
        f"the multiplier would need a shift above {LARGEST_SHIFT}: narrow the range of the output or use wider weights",
    )
    return MulBias(multiplier, shift, ratios)


def _one(ratio: float, available: int) -> tuple[int, int]:
    fraction, exponent = np.frexp(ratio)
    f = float(np.float32(fraction))
    bits = available
    while True:
        multiplier, shift = int(np.floor(f * 2.0**bits + 0.5)), bits - int(exponent)
        unwanted = shift > LARGEST_USUAL_SHIFT or multiplier % 2 == 0
        if not (unwanted and shift > 0 and bits > 0):
            return multiplier, shift
        bits -= 1


def _refuse(ratios: Reals, bad: np.ndarray, reason: str) -> None:
    if np.any(bad):
        channel = int(np.argmax(bad))
        raise UnsupportedError(f"channel {channel}: the ratio of scales is {ratios[channel]:.6g}; {reason}")
