"""From accumulators to codes: y = clip(norm(norm(acc + bias, pre) * M, N), qmin, qmax) (docs/gap9.md, 6).

The vendor's kernel works in int32, where acc * M may wrap; here products are exact, so that what would wrap saturates.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tflq.graph import Affine, Array
from tflq.interpreter.kernels.gap9.mul_bias import MulBias
from tflq.interpreter.kernels.gap9.rounding import norm
from tflq.interpreter.numerics.fixed_point import Integers
from tflq.interpreter.numerics.requantise import Exact, StepMap, fit_step_map, requantise

_BLOCK = 1 << 15
"""Elements at a time: the block stays in the second-level cache."""


@dataclass(frozen=True, eq=False)
class Rescaling:
    """The integers of one epilogue.

    Attributes:
        bias: stored bias, int64[O]: quantised bias and folded zero points.
        mul_bias: M and N for each channel; N with the pre-normalisation in it.
        pre_normalization: bits by which the accumulator is shifted first; 0 for 8-bit features.
        minimum: smallest code of the output.
        maximum: largest code.
        step_map: proven map, None where the exact rule runs.
    """

    bias: Integers
    mul_bias: MulBias
    pre_normalization: int
    minimum: int
    maximum: int
    step_map: StepMap | None

    @property
    def shift(self) -> Integers:
        """N as the hardware gets it: without the pre-normalisation."""
        return self.mul_bias.shift - self.pre_normalization

    def exact(self, accumulators: Integers) -> Integers:
        """The rule itself: accumulators without bias, int64[..., O] -> codes int64[..., O]."""
        total = norm(accumulators + self.bias, self.pre_normalization)
        return np.clip(norm(total * self.mul_bias.multiplier, self.shift), self.minimum, self.maximum)

    def in_reals(self, accumulators: Array) -> NDArray[np.float64]:
        """The same rule in float64, where every step is exact: accumulators [..., O] -> codes.

        |acc + bias| < 2^32 and M < 2^8, so products are below 2^40; a division by 2^N and the half that is added need
        at most 41 bits, and floor is exact.
        """
        total = accumulators.astype(np.float64)
        total += self.bias
        if self.pre_normalization:
            total *= 2.0**-self.pre_normalization
            total += 0.5
            np.floor(total, out=total)
        total *= self.mul_bias.multiplier * np.exp2(-self.shift.astype(np.float64))
        total += 0.5
        np.floor(total, out=total)
        return np.clip(total, self.minimum, self.maximum, out=total)

    def apply(self, accumulators: Array, dtype: np.dtype[np.generic]) -> Array:
        """Return codes for exact accumulators [..., O] in float32, float64 or int64."""
        if self.step_map is not None:
            rule: Exact = self.exact
            return requantise(self.step_map, rule, accumulators, dtype)
        result = np.empty(accumulators.shape, dtype)
        rows, out = accumulators.reshape(-1, len(self.bias)), result.reshape(-1, len(self.bias))
        step = max(1, _BLOCK // len(self.bias))
        for i in range(0, len(rows), step):
            np.copyto(out[i : i + step], self.in_reals(rows[i : i + step]), casting="unsafe")
        return result


def make_rescaling(
    bias: Integers, mul_bias: MulBias, pre_normalization: int, output: Affine, lower: Integers, upper: Integers
) -> Rescaling:
    """Return the epilogue with a map that is proven on [lower, upper], where there is one.

    Args:
        bias: stored bias, int64[O].
        mul_bias: M and N.
        pre_normalization: bits.
        output: type of the result.
        lower: smallest accumulator of each channel, without bias.
        upper: largest.
    """
    channels = bias.shape
    wide = MulBias(
        np.broadcast_to(mul_bias.multiplier, channels),
        np.broadcast_to(mul_bias.shift, channels),
        np.broadcast_to(mul_bias.ratio, channels),
    )
    minimum, maximum = output.minimum_code, output.maximum_code
    plain = Rescaling(bias, wide, pre_normalization, minimum, maximum, None)
    slope = wide.multiplier * np.exp2(-wide.shift.astype(np.float64))
    fitted = fit_step_map(plain.exact, slope, bias, lower, upper, 0, minimum, maximum)
    return Rescaling(bias, wide, pre_normalization, minimum, maximum, fitted)
