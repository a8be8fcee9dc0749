"""Means of codes: exact sums, real = (sum / taps - Z) * S in float64, then levels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.graph import Affine, Array, Node, Operands
from tflq.interpreter.kernels.openvino.levels import CODES, Levels, clamp_reals, finish, levels_of
from tflq.interpreter.numerics.fixed_point import Integers, activation_bounds
from tflq.interpreter.operands.checks import require_type


@dataclass(frozen=True, eq=False)
class AverageParams:
    """How sums of codes become means.

    Attributes:
        source: of the input.
        minimum: lower bound of the fused activation.
        maximum: upper bound.
        levels: of the output; None for float32.
    """

    source: Affine
    minimum: float
    maximum: float
    levels: Levels | None

    def apply(self, sums: Array, counts: Integers | int) -> Array:
        """Return codes or float32 for exact sums [..., C] of `counts` codes."""
        shifted = sums.astype(np.float64) - counts * self.source.zero_point
        real = shifted * self.source.scale.astype(np.float64) / counts
        return finish(clamp_reals(real, self.minimum, self.maximum), self.levels)


def lower_average(node: Node, operands: Operands) -> AverageParams:
    """Decide the numbers.

    Raises:
        UnsupportedError: an input that is not codes.
    """
    require_type(operands.input(0), CODES)
    low, high = activation_bounds(node.attributes.text("fused_activation_function", "none"))
    return AverageParams(
        operands.input(0).affine,
        -np.inf if low is None else low,
        np.inf if high is None else high,
        levels_of(node, operands.output()),
    )
