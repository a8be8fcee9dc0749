"""Add and Sub: each input gets its own 8-bit multiplier and its own rounding (docs/tpu_mlir.md, 5).

y = sat(up((qa - Za) * ma, sa) +- up((qb - Zb) * mb, sb) + Zy). In float16 y = f16(a +- b).
The manual's formulas: symmetric y = sat(up(qa * ma +- qb * mb, s)) with one shift; asymmetric in float32.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.graph import Affine, Array, DType, Node, Operands
from tflq.interpreter.kernels.tpu_mlir.multiplier import Multiplier, find_multiplier, is_manual
from tflq.interpreter.kernels.tpu_mlir.pairs import PairRule, pair_table, run_pairs
from tflq.interpreter.kernels.tpu_mlir.rounding import shift_half_up
from tflq.interpreter.numerics.fixed_point import Integers, round_half_away
from tflq.interpreter.operands.checks import require_same_type
from tflq.interpreter.samples import align

MULTIPLIER_BITS = 8


@dataclass(frozen=True, eq=False)
class SumParams:
    """The integers of one Add or Sub.

    Attributes:
        sign: +1, or -1 for Sub.
        rescale: m and s of both inputs; None in float16 and in the manual's asymmetric form.
        table: all pairs of codes; None in float16.
        rectifies: whether a rectifier is fused, in float16; in integers it is the saturation of an unsigned output.
    """

    sign: int
    rescale: Multiplier | None = None
    table: Array | None = None
    rectifies: bool = False


def lower_sum(node: Node, operands: Operands, sign: int) -> SumParams:
    """Decide the integers.

    Raises:
        UnsupportedError: other types, or a ratio of scales without multiplier.
        GraphError: shapes that do not broadcast.
    """
    if operands.output().dtype is DType.FLOAT16:
        require_same_type(operands.output(), operands.input(0), operands.input(1))
        fused = node.attributes.text("fused_activation_function", "none")
        return SumParams(sign, rectifies=fused != "none")
    affines = (operands.input(0).affine, operands.input(1).affine)
    y = operands.output().affine
    if is_manual(node) and node.attributes.boolean("asymmetric"):
        return SumParams(sign, None, pair_table(_float_rule(affines, y, sign), operands))
    ratios = [float(a.scale[0]) / float(y.scale[0]) for a in affines]
    found = _one_shift(ratios) if is_manual(node) else find_multiplier(ratios, MULTIPLIER_BITS, 0)
    return SumParams(sign, found, pair_table(_rule(affines, y, sign, found, is_manual(node)), operands))


def run_sum(params: SumParams, first: Array, second: Array) -> tuple[Array, ...]:
    """Run it: codes or float16 [S or 1, *shape] twice, shapes broadcast -> [S, *shape]."""
    if params.table is not None:
        return (run_pairs(params.table, first, second),)
    a, b = (array.astype(np.float16, copy=False) for array in align(first, second))
    with np.errstate(over="ignore", invalid="ignore"):
        y = a + b if params.sign > 0 else a - b
        return (np.maximum(y, np.float16(0)) if params.rectifies else y,)


def _one_shift(ratios: list[float]) -> Multiplier:
    """Give the larger ratio its best multiplier, the other one its own with the same shift."""
    best = find_multiplier(max(ratios), MULTIPLIER_BITS, 0)
    shift = np.repeat(best.shift, 2)
    scales = np.array(ratios)
    return Multiplier(round_half_away(scales * np.exp2(shift)).astype(np.int64), shift, scales)


def _rule(affines: tuple[Affine, ...], y: Affine, sign: int, found: Multiplier, one_shift: bool) -> PairRule:
    m_a, m_b, s_a, s_b = (int(n) for n in (*found.multiplier, *found.shift))
    z_a, z_b, z_y = (int(a.zero_point[0]) for a in (*affines, y))

    def rule(a: Integers, b: Integers) -> Integers:
        first, second = (a - z_a) * m_a, sign * (b - z_b) * m_b
        if one_shift:
            return shift_half_up(first + second, s_a) + z_y
        return shift_half_up(first, s_a) + sign * shift_half_up(sign * second, s_b) + z_y

    return rule


def _float_rule(affines: tuple[Affine, ...], y: Affine, sign: int) -> PairRule:
    s_a, s_b, s_y = (np.float32(a.scale[0]) for a in (*affines, y))
    z_a, z_b, z_y = (int(a.zero_point[0]) for a in (*affines, y))

    def rule(a: Integers, b: Integers) -> Integers:
        real = (a - z_a).astype(np.float32) * s_a + sign * ((b - z_b).astype(np.float32) * s_b)
        return round_half_away(real / s_y).astype(np.int64) + z_y

    return rule
