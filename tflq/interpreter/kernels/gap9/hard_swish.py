"""HARD_SWISH in GAP9's arithmetic: x * clip(x + 3, 0, 6) / 6 on codes (docs/gap9.md, 11)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tflq.errors import UnsupportedError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.gap9.curve import curve_table, run_curve
from tflq.interpreter.kernels.gap9.mul_bias import MulBias, mul_bias
from tflq.interpreter.kernels.gap9.rounding import norm, round_half_up
from tflq.interpreter.numerics.fixed_point import Integers
from tflq.interpreter.numerics.lookup_tables import Table


@dataclass(frozen=True, eq=False)
class HardSwishParams:
    """The integers of one hard swish.

    Attributes:
        offset: rnd(3 / S_i), the code of 3.
        upper_bound: rnd(6 / S_i), the code of 6.
        mul_bias: M, N about S_i^2 / (6 * S_y).
        zero_point: of the output.
        minimum: smallest code.
        maximum: largest code.
        dtype: of the output.
        table: for inputs of 8 bits.
    """

    offset: int
    upper_bound: int
    mul_bias: MulBias
    zero_point: int
    minimum: int
    maximum: int
    dtype: np.dtype[np.generic]
    table: Table | None = None

    def exact(self, x: Integers) -> Integers:
        """clip(norm(x * clip(x + offset, 0, upper_bound) * M, N) + Z_y)."""
        product = x * np.clip(x + self.offset, 0, self.upper_bound)
        y = norm(product * self.mul_bias.multiplier[0], self.mul_bias.shift[0]) + self.zero_point
        return np.clip(y, self.minimum, self.maximum)


def lower(node: Node, operands: Operands) -> HardSwishParams:  # noqa: ARG001
    """Decide the integers of HARD_SWISH.

    Raises:
        UnsupportedError: an input with a zero point, or an output of 16 bits, where the vendor's int32 product wraps.
    """
    x, output = operands.input(0), operands.output()
    if int(x.affine.zero_point[0]):
        raise UnsupportedError(f"input '{x.name}' has zero point {x.affine.zero_point[0]}; hard swish takes 0")
    if output.affine.bits > 8:
        raise UnsupportedError(
            f"output '{output.name}' has {output.affine.bits} bits; hard swish takes 8, its product would overflow"
        )
    s_i, y = float(x.affine.scale[0]), output.affine
    params = HardSwishParams(
        int(round_half_up(3 / s_i)),
        int(round_half_up(6 / s_i)),
        mul_bias(s_i * s_i / (6 * float(y.scale[0]))),
        int(y.zero_point[0]),
        y.minimum_code,
        y.maximum_code,
        output.dtype.storage,
    )
    return replace(params, table=curve_table(params.exact, x, output))


def run(params: HardSwishParams, x: Array) -> tuple[Array, ...]:
    """Run HARD_SWISH: int32 or int8 [S, *shape] -> codes [S, *shape]."""
    return (run_curve(params.table, params.exact, x, params.dtype),)
