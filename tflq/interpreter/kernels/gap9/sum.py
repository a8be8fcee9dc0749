"""SUM over height and width in GAP9's arithmetic: a global sum pool of int8 (docs/gap9.md, 10)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.gap9.mul_bias import MulBias, mul_bias
from tflq.interpreter.kernels.gap9.rounding import norm


@dataclass(frozen=True, eq=False)
class SumPoolParams:
    """The integers of one global sum.

    Attributes:
        axes: summed axes of the model's own shape.
        mul_bias: M * 2^-N about S_x / S_y.
        minimum: smallest code.
        maximum: largest code.
        shape: of the output.
    """

    axes: tuple[int, ...]
    mul_bias: MulBias
    minimum: int
    maximum: int
    shape: tuple[int, ...]


def lower(node: Node, operands: Operands) -> SumPoolParams:  # noqa: ARG001
    """Decide the integers of SUM: input and output are symmetric; raises as `mul_bias`."""
    x, output = operands.input(0), operands.output()
    axes = tuple(sorted(int(a) % len(x.shape) for a in operands.constant(1).reshape(-1)))
    ratio = x.affine.scale.astype(np.float64) / output.affine.scale.astype(np.float64)
    return SumPoolParams(axes, mul_bias(ratio), output.affine.minimum_code, output.affine.maximum_code, output.shape)


def run(params: SumPoolParams, x: Array, _axes: Array) -> tuple[Array, ...]:
    """Run SUM: clip(norm(sum * M, N))."""
    sums = x.sum(axis=tuple(a + 1 for a in params.axes), dtype=np.int64)
    y = norm(sums * params.mul_bias.multiplier, params.mul_bias.shift)
    codes = np.clip(y, params.minimum, params.maximum).astype(x.dtype)
    return (codes.reshape(x.shape[0], *params.shape),)
