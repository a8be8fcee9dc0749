"""ADD, SUB and MUL of two activations of 8 bits, executed as tables of all pairs (docs/tpu_mlir.md, 5).

A sum gives each input its own 8-bit multiplier and its own rounding:
y = sat(up((qa - Za) * ma, sa) +- up((qb - Zb) * mb, sb) + Zy). In float16 y = f16(a +- b).
The manual's formulas: symmetric y = sat(up(qa * ma +- qb * mb, s)) with one shift; asymmetric in float32.
A product: y = sat(up((qa - Za) * (qb - Zb) * m, s) + Zy), 8-bit m, s may be negative.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from tflq.graph import Array, DType, Node, Operands
from tflq.graph.quantisation import FloatArray
from tflq.interpreter.kernels.tpu_mlir.multiplier import Multiplier, find_multiplier, is_manual
from tflq.interpreter.kernels.tpu_mlir.rounding import saturate, shift_half_up
from tflq.interpreter.numerics.fixed_point import Integers, round_half_away
from tflq.interpreter.numerics.pair_tables import make_pairs, run_pairs
from tflq.interpreter.operands.checks import EIGHT_BITS, require_broadcast, require_same_type, require_type
from tflq.interpreter.registry import Kernel
from tflq.interpreter.samples import align

MULTIPLIER_BITS = 8


@dataclass(frozen=True, eq=False)
class SumParams:
    """The params of one Add or Sub.

    Attributes:
        sign: +1, or -1 for Sub.
        dtype: of the output.
        zero_points: Za, Zb, Zy.
        scales: Sa, Sb, Sy in float32, for the manual's asymmetric form; else None.
        rescale: m and s of both inputs; None in float16 and in the manual's asymmetric form.
        one_shift: whether the products are added before they are rounded, as in the manual's symmetric form.
        table: all pairs of quantized values; None in float16.
        rectifies: whether a rectifier is fused, in float16; in integers it is the saturation of an unsigned output.
    """

    sign: int
    dtype: DType
    zero_points: tuple[int, int, int] = (0, 0, 0)
    scales: FloatArray | None = None
    rescale: Multiplier | None = None
    one_shift: bool = False
    table: Array | None = None
    rectifies: bool = False

    def exact(self, first: Integers, second: Integers) -> Array:
        """The rule itself, in integers or in float32."""
        z_a, z_b, z_y = self.zero_points
        a, b = first - z_a, second - z_b
        if self.rescale is None:
            return saturate(self._in_reals(a, b) + z_y, self.dtype)
        (m_a, m_b), (s_a, s_b) = self.rescale.multiplier, self.rescale.shift
        if self.one_shift:
            return saturate(shift_half_up(a * m_a + self.sign * (b * m_b), s_a) + z_y, self.dtype)
        scaled = shift_half_up(a * m_a, s_a) + self.sign * shift_half_up(b * m_b, s_b)
        return saturate(scaled + z_y, self.dtype)

    def _in_reals(self, a: Integers, b: Integers) -> Integers:
        assert self.scales is not None
        s_a, s_b, s_y = self.scales
        real = a.astype(np.float32) * s_a + self.sign * (b.astype(np.float32) * s_b)
        return round_half_away(real / s_y).astype(np.int64)


@dataclass(frozen=True, eq=False)
class MulParams:
    """The params of one product.

    Attributes:
        rescale: m and s about Sa * Sb / Sy.
        zero_points: Za, Zb, Zy.
        dtype: of the output.
        table: all pairs of quantized values.
    """

    rescale: Multiplier
    zero_points: tuple[int, int, int]
    dtype: DType
    table: Array | None = None

    def exact(self, first: Integers, second: Integers) -> Array:
        """The rule itself."""
        z_a, z_b, z_y = self.zero_points
        product = (first - z_a) * (second - z_b) * self.rescale.multiplier[0]
        return saturate(shift_half_up(product, self.rescale.shift[0]) + z_y, self.dtype)


def lower_sum(node: Node, operands: Operands, sign: int) -> SumParams:
    """Decide the params of ADD or SUB.

    Raises:
        UnsupportedError: other types, or a ratio of scales without multiplier.
        GraphError: shapes that do not broadcast.
    """
    output = operands.output()
    if output.dtype is DType.FLOAT16:
        require_same_type(output, operands.input(0), operands.input(1))
        fused = node.attributes.text("fused_activation_function", "none")
        return SumParams(sign, output.dtype, rectifies=fused != "none")
    (s_a, s_b, s_y), zero_points = _parameters(operands)
    if is_manual(node) and node.attributes.boolean("asymmetric"):
        params = SumParams(sign, output.dtype, zero_points, np.array([s_a, s_b, s_y], np.float32))
    else:
        ratios = [s_a / s_y, s_b / s_y]
        found = _one_shift(ratios) if is_manual(node) else find_multiplier(ratios, MULTIPLIER_BITS, 0)
        params = SumParams(sign, output.dtype, zero_points, None, found, is_manual(node))
    return replace(params, table=_table(params.exact, operands))


def lower_product(node: Node, operands: Operands) -> MulParams:  # noqa: ARG001
    """Decide the params of MUL.

    Raises:
        UnsupportedError: other types, or a ratio of scales without multiplier.
        GraphError: shapes that do not broadcast.
    """
    (s_a, s_b, s_y), zero_points = _parameters(operands)
    params = MulParams(find_multiplier(s_a * s_b / s_y, MULTIPLIER_BITS), zero_points, operands.output().dtype)
    return replace(params, table=_table(params.exact, operands))


def run_pair(params: SumParams | MulParams, first: Array, second: Array) -> tuple[Array, ...]:
    """Run it: quantized values or float16 [S or 1, *shape] twice, shapes broadcast -> [S, *shape]."""
    if params.table is not None:
        return (run_pairs(params.table, first, second),)
    assert isinstance(params, SumParams)
    a, b = (array.astype(np.float16, copy=False) for array in align(first, second))
    with np.errstate(over="ignore", invalid="ignore"):
        y = a + b if params.sign > 0 else a - b
        return (np.maximum(y, np.float16(0)) if params.rectifies else y,)


def _parameters(operands: Operands) -> tuple[tuple[float, float, float], tuple[int, int, int]]:
    """Return the scales and the zero points of both inputs and the output."""
    a, b, y = operands.input(0).affine, operands.input(1).affine, operands.output().affine
    scales = (float(a.scale[0]), float(b.scale[0]), float(y.scale[0]))
    return scales, (int(a.zero_point[0]), int(b.zero_point[0]), int(y.zero_point[0]))


def _table(rule: Callable[[Integers, Integers], Array], operands: Operands) -> Array:
    first, second, output = operands.input(0), operands.input(1), operands.output()
    for tensor in (first, second, output):
        require_type(tensor, EIGHT_BITS)
    require_broadcast(first, second)
    return make_pairs(rule, first.dtype, second.dtype, output.dtype)


def _one_shift(ratios: list[float]) -> Multiplier:
    """Give the larger ratio its best multiplier, the other one its own with the same shift."""
    best = find_multiplier(max(ratios), MULTIPLIER_BITS, 0)
    shift = np.repeat(best.shift, 2)
    scales = np.array(ratios)
    return Multiplier(round_half_away(scales * np.exp2(shift)).astype(np.int64), shift, scales)


_SUM, _SOURCE = "y = sat(up((qa - Za) * ma, sa) {} up((qb - Zb) * mb, sb) + Zy)", "docs/tpu_mlir.md, 5"
KERNELS = {
    "add": Kernel(partial(lower_sum, sign=1), run_pair, _SUM.format("+"), _SOURCE),
    "sub": Kernel(partial(lower_sum, sign=-1), run_pair, _SUM.format("-"), _SOURCE),
    "mul": Kernel(lower_product, run_pair, "y = sat(up((qa - Za) * (qb - Zb) * m, s) + Zy)", _SOURCE),
}
