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
from tflq.interpreter.numerics.requantise import StepMap, fit_step_map, requantise

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
    """

    bias: Integers
    mul_bias: MulBias
    pre_normalization: int
    minimum: int
    maximum: int

    @staticmethod
    def of(bias: Integers, mul_bias: MulBias, pre_normalization: int, output: Affine) -> Rescaling:
        """Return the epilogue with M and N of each channel.

        Args:
            bias: stored bias, int64[O].
            mul_bias: M and N, one or one for each channel.
            pre_normalization: bits.
            output: type of the result.
        """
        wide = MulBias(
            np.broadcast_to(mul_bias.multiplier, bias.shape),
            np.broadcast_to(mul_bias.shift, bias.shape),
            np.broadcast_to(mul_bias.ratio, bias.shape),
        )
        return Rescaling(bias, wide, pre_normalization, output.minimum_code, output.maximum_code)

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

    def apply(self, step_map: StepMap | None, accumulators: Array, dtype: np.dtype[np.generic]) -> Array:
        """Return codes for exact accumulators [..., O] by a proven map, or else in float64."""
        if step_map is not None:
            return requantise(step_map, self.exact, accumulators, dtype)
        result = np.empty(accumulators.shape, dtype)
        rows, out = accumulators.reshape(-1, len(self.bias)), result.reshape(-1, len(self.bias))
        step = max(1, _BLOCK // len(self.bias))
        for i in range(0, len(rows), step):
            np.copyto(out[i : i + step], self.in_reals(rows[i : i + step]), casting="unsafe")
        return result

    def fitted(self, lower: Integers, upper: Integers) -> StepMap | None:
        """Return a map that is proven for accumulators without bias in [lower, upper], int64[O], where there is one."""
        slope = self.mul_bias.multiplier * np.exp2(-self.mul_bias.shift.astype(np.float64))
        return fit_step_map(self.exact, slope, self.bias, lower, upper, 0, self.minimum, self.maximum)
