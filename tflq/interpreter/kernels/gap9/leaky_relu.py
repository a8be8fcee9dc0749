"""LEAKY_RELU in GAP9's arithmetic: the slope in 7 fractional bits, one scale in and out (docs/gap9.md, 11)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tflq.errors import UnsupportedError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.gap9.curve import curve_table, run_curve
from tflq.interpreter.kernels.gap9.rounding import norm
from tflq.interpreter.numerics.fixed_point import Integers
from tflq.interpreter.numerics.lookup_tables import Table

_LOWEST, _HIGHEST = -1.0, 0.996


@dataclass(frozen=True, eq=False)
class LeakyReluParams:
    """The integers of one leaky ReLU.

    Attributes:
        slope: L = trunc(0.5 + alpha * 128), Q7 in int8.
        zero_point: of the output; the input's is 0.
        minimum: smallest code.
        maximum: largest code.
        dtype: of the output.
        table: for inputs of 8 bits.
    """

    slope: int
    zero_point: int
    minimum: int
    maximum: int
    dtype: np.dtype[np.generic]
    table: Table | None = None

    def exact(self, x: Integers) -> Integers:
        """clip((x > 0 ? x : norm(x * L, 7)) + Z_y); M = 1 and N = 0, the scales being equal."""
        y = np.where(x > 0, x, norm(x * self.slope, 7)) + self.zero_point
        return np.asarray(np.clip(y, self.minimum, self.maximum), np.int64)


def lower(node: Node, operands: Operands) -> LeakyReluParams:
    """Decide the integers of LEAKY_RELU.

    Raises:
        UnsupportedError: alpha outside [-1, 0.996), which would wrap its 8 bits; an input with a zero point; other
            scales.
    """
    x, output = operands.input(0), operands.output()
    alpha = node.attributes.real("alpha")
    if not _LOWEST <= alpha < _HIGHEST:
        raise UnsupportedError(f"alpha is {alpha}; allowed is {_LOWEST} to below {_HIGHEST}")
    if int(x.affine.zero_point[0]) or not np.allclose(x.affine.scale, output.affine.scale):
        raise UnsupportedError(f"input '{x.name}' must have zero point 0 and the scale of the output")
    y = output.affine
    slope = int(np.trunc(0.5 + alpha * 128))
    params = LeakyReluParams(slope, int(y.zero_point[0]), y.minimum_code, y.maximum_code, output.dtype.storage)
    return replace(params, table=curve_table(params.exact, x, output))


def run(params: LeakyReluParams, x: Array) -> tuple[Array, ...]:
    """Run LEAKY_RELU: int32 or int8 [S, *shape] -> codes [S, *shape]."""
    return (run_curve(params.table, params.exact, x, params.dtype),)
