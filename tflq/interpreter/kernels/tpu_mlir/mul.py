"""MUL of two activations: y = sat(up((qa - Za) * (qb - Zb) * m, s) + Zy), 8-bit m, s may be negative."""

from __future__ import annotations

from dataclasses import dataclass

from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.tpu_mlir.multiplier import Multiplier, find_multiplier
from tflq.interpreter.kernels.tpu_mlir.pairs import pair_table, run_pairs
from tflq.interpreter.kernels.tpu_mlir.rounding import shift_half_up
from tflq.interpreter.numerics.fixed_point import Integers

MULTIPLIER_BITS = 8


@dataclass(frozen=True, eq=False)
class MulParams:
    """The integers of one product.

    Attributes:
        rescale: m and s about Sa * Sb / Sy.
        table: all pairs of codes.
    """

    rescale: Multiplier
    table: Array


def lower(node: Node, operands: Operands) -> MulParams:  # noqa: ARG001
    """Decide the integers of MUL.

    Raises:
        UnsupportedError: other types, or a ratio of scales without multiplier.
        GraphError: shapes that do not broadcast.
    """
    a, b, y = operands.input(0).affine, operands.input(1).affine, operands.output().affine
    found = find_multiplier(float(a.scale[0]) * float(b.scale[0]) / float(y.scale[0]), MULTIPLIER_BITS)

    m, s = int(found.multiplier[0]), int(found.shift[0])
    z_a, z_b, z_y = (int(affine.zero_point[0]) for affine in (a, b, y))

    def rule(first: Integers, second: Integers) -> Integers:
        return shift_half_up((first - z_a) * (second - z_b) * m, s) + z_y

    return MulParams(found, pair_table(rule, operands))


def run(params: MulParams, first: Array, second: Array) -> tuple[Array, ...]:
    """Run MUL: codes [S or 1, *shape] twice, shapes broadcast -> codes [S, *shape]."""
    return (run_pairs(params.table, first, second),)
