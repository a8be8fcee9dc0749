"""MEAN over height and width in GAP9's arithmetic: a global average pool of int8 (docs/gap9.md, 10)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.gap9.mul_bias import MulBias, mul_bias
from tflq.interpreter.kernels.gap9.rounding import norm

_FRACTION_BITS = 7


@dataclass(frozen=True, eq=False)
class MeanParams:
    """The integers of one mean.

    Attributes:
        axes: summed axes of the model's own shape.
        count: elements of one mean.
        mul_bias: M * 2^-N about S_x / (S_y * 128).
        minimum: smallest code.
        maximum: largest code.
        shape: of the output.
    """

    axes: tuple[int, ...]
    count: int
    mul_bias: MulBias
    minimum: int
    maximum: int
    shape: tuple[int, ...]


def lower(node: Node, operands: Operands) -> MeanParams:  # noqa: ARG001
    """Decide the integers of MEAN: input and output are symmetric; raises as `mul_bias`."""
    x, output = operands.input(0), operands.output()
    axes = tuple(sorted(int(a) % len(x.shape) for a in operands.constant(1).reshape(-1)))
    ratio = x.affine.scale.astype(np.float64) / (output.affine.scale.astype(np.float64) * (1 << _FRACTION_BITS))
    return MeanParams(
        axes,
        int(np.prod([x.shape[a] for a in axes])),
        mul_bias(ratio),
        output.affine.minimum_code,
        output.affine.maximum_code,
        output.shape,
    )


def run(params: MeanParams, x: Array, _axes: Array) -> tuple[Array, ...]:
    """Run MEAN: clip(norm(trunc((sum << 7) / n) * M, N)); the division truncates toward zero."""
    sums = x.sum(axis=tuple(a + 1 for a in params.axes), dtype=np.int64) << _FRACTION_BITS
    means = np.sign(sums) * (np.abs(sums) // params.count)
    y = norm(means * params.mul_bias.multiplier, params.mul_bias.shift)
    codes = np.clip(y, params.minimum, params.maximum).astype(x.dtype)
    return (codes.reshape(x.shape[0], *params.shape),)
