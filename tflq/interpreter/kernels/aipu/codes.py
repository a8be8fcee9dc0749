"""The last step of nearly every layer: y = clamp(RNE(total * M * 2^-N) - zp_y) (docs/aipu.md, 2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.graph import Array, Tensor
from tflq.interpreter.kernels.aipu.multiplier import Doubles, Multiplier
from tflq.interpreter.kernels.aipu.scales import code_limits, offset_of
from tflq.interpreter.numerics.fixed_point import Integers


@dataclass(frozen=True)
class OutputCodes:
    """How one output stores whole numbers.

    Attributes:
        offset: zp_y.
        minimum: smallest code.
        maximum: largest code.
        dtype: of the codes.
    """

    offset: int
    minimum: int
    maximum: int
    dtype: np.dtype[np.generic]

    def requantise(self, total: Integers, rescale: Multiplier) -> Array:
        """Return clamp(RNE(total * M * 2^-N) - zp_y)."""
        return self.store(rescale.apply(total))

    def store(self, rounded: Doubles | Integers) -> Array:
        """Return clamp(rounded - zp_y) of numbers that are whole already."""
        codes: Array = np.clip(rounded - self.offset, self.minimum, self.maximum).astype(self.dtype)
        return codes


def codes_of(output: Tensor) -> OutputCodes:
    """Return how an output stores whole numbers."""
    return OutputCodes(offset_of(output), *code_limits(output), output.dtype.storage)
