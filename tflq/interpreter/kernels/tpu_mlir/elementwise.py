"""Operators of two tensors of 8 bits, executed as tables of all pairs, and comparisons.

Source: docs/rules/tpu_mlir_operators.md#elementwise-operators.

A sum rounds each input separately, with its own 8-bit multiplier: y = sat(up((qa - Za) * ma, sa) +- up((qb - Zb) * mb,
sb) + Zy). In float16 y = f16(f32(a) +- f32(b)). The manual's formulas: symmetric y = sat(up(qa * ma +- qb * mb, s))
with one shift; asymmetric in float32. A product: y = sat(up((qa - Za) * (qb - Zb) * m, s) + Zy), 8-bit m, s may be
negative. A fused rectifier clamps at Zy. Maxima and minima compare raw quantized values. One operand may be one number
(scalars.py). Comparisons return 0 or 1 in uint8, S = 1: two activations have one range, and their raw quantized values
are compared; a number c is compared as rha(c / S) + Z.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from tflq.arrays import Integers, Reals
from tflq.errors import UnsupportedError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.tpu_mlir.multiplier import Multiplier, find_multiplier, is_manual, saturate, shift_half_up
from tflq.interpreter.kernels.tpu_mlir.scalars import (
    ScalarParams,
    floor_of,
    is_scalar,
    lower_added_number,
    lower_bound,
    lower_compared_number,
    lower_factor,
    run_scalar,
)
from tflq.interpreter.numerics.fixed_point import round_half_away
from tflq.interpreter.numerics.lookup_tables import make_pairs, run_pairs
from tflq.interpreter.operands.checks import EIGHT_BITS, require_broadcast, require_type
from tflq.interpreter.registry import Kernel
from tflq.interpreter.samples import align

MULTIPLIER_BITS = 8


@dataclass(frozen=True, eq=False)
class SumParams:
    """The params of one Add or Sub.

    Attributes:
        sign: +1, or -1 for Sub.
        dtype: Storage type of the output.
        zero_points: Za, Zb, Zy.
        scales: Sa, Sb, Sy in float32, for the manual's asymmetric form; else None.
        rescale: m and s of both inputs; None in float16 and in the manual's asymmetric form.
        one_shift: whether the products are added before they are rounded, as in the manual's symmetric form.
        table: all pairs of quantized values; None in float16.
        rectifies: whether a rectifier is fused, in float16.
        floor: least result in integers: Zy if a rectifier is fused.
    """

    sign: int
    dtype: DType
    zero_points: tuple[int, int, int] = (0, 0, 0)
    scales: Reals | None = None
    rescale: Multiplier | None = None
    one_shift: bool = False
    table: Array | None = None
    rectifies: bool = False
    floor: int = -128

    def terms(self, first: Integers, second: Integers) -> tuple[Integers, Integers] | None:
        """Return the addends of the inputs, before a shift that both share; None in float32."""
        if self.rescale is None:
            return None
        (m_a, m_b), (s_a, s_b) = self.rescale.multiplier, self.rescale.shift
        a, b = (first - self.zero_points[0]) * m_a, (second - self.zero_points[1]) * m_b
        if not self.one_shift:
            a, b = shift_half_up(a, s_a), shift_half_up(b, s_b)
        return a, self.sign * b

    def exact(self, first: Integers, second: Integers) -> Array:
        """The rule itself, in integers or in float32."""
        z_a, z_b, z_y = self.zero_points
        terms = self.terms(first, second)
        if terms is None or self.rescale is None:
            scaled = self._in_reals(first - z_a, second - z_b)
        else:
            scaled = terms[0] + terms[1]
            scaled = shift_half_up(scaled, self.rescale.shift[0]) if self.one_shift else scaled
        return saturate(np.maximum(scaled + z_y, self.floor), self.dtype)

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
        dtype: Storage type of the output.
        floor: least result: Zy if a rectifier is fused.
        table: all pairs of quantized values.
    """

    rescale: Multiplier
    zero_points: tuple[int, int, int]
    dtype: DType
    floor: int
    table: Array | None = None

    def exact(self, first: Integers, second: Integers) -> Array:
        """The rule itself."""
        z_a, z_b, z_y = self.zero_points
        product = (first - z_a) * (second - z_b) * self.rescale.multiplier[0]
        scaled = shift_half_up(product, self.rescale.shift[0]) + z_y
        return saturate(np.maximum(scaled, self.floor), self.dtype)


@dataclass(frozen=True, eq=False)
class RawParams:
    """The params of operators on raw quantized values: a maximum, a minimum, a comparison.

    Attributes:
        table: all pairs of quantized values.
    """

    table: Array


def lower_sum(node: Node, operands: Operands, sign: int) -> SumParams | ScalarParams:
    """Decide the params of ADD or SUB.

    Raises:
        UnsupportedError: other types, or a ratio of scales without multiplier.
        GraphError: shapes that do not broadcast.
    """
    output = operands.output()
    if output.dtype is DType.FLOAT16:
        return SumParams(sign, output.dtype, rectifies=_is_rectified(node))
    if is_scalar(operands):
        return lower_added_number(operands, sign, floor_of(node, operands))
    (s_a, s_b, s_y), zero_points = _parameters(operands)
    floor = floor_of(node, operands)
    if is_manual(node) and node.attributes.boolean("asymmetric"):
        params = SumParams(sign, output.dtype, zero_points, np.array([s_a, s_b, s_y], np.float32), floor=floor)
    else:
        ratios = [s_a / s_y, s_b / s_y]
        multiplier = _one_shift(ratios) if is_manual(node) else find_multiplier(ratios, MULTIPLIER_BITS, 0)
        params = SumParams(sign, output.dtype, zero_points, None, multiplier, is_manual(node), floor=floor)
    return replace(params, table=_table(params.exact, operands))


def lower_product(node: Node, operands: Operands) -> MulParams | ScalarParams:
    """Decide the params of MUL.

    Raises:
        UnsupportedError: other types, or a ratio of scales without multiplier.
        GraphError: shapes that do not broadcast.
    """
    if is_scalar(operands):
        return lower_factor(operands)
    (s_a, s_b, s_y), zero_points = _parameters(operands)
    multiplier = find_multiplier(s_a * s_b / s_y, MULTIPLIER_BITS)
    params = MulParams(multiplier, zero_points, operands.output().dtype, floor_of(node, operands))
    return replace(params, table=_table(params.exact, operands))


def lower_extreme(node: Node, operands: Operands, choose: np.ufunc) -> RawParams | ScalarParams:
    """Decide the params of MAXIMUM or MINIMUM; raises as `lower_product`."""
    if is_scalar(operands):
        return lower_bound(operands, choose, node.attributes.boolean("asymmetric"))
    dtype = operands.output().dtype
    return RawParams(_table(lambda a, b: saturate(choose(a, b), dtype), operands))


def lower_comparison(node: Node, operands: Operands, compare: np.ufunc) -> RawParams | ScalarParams:
    """Decide the params of a comparison or LOGICAL_AND.

    Raises:
        UnsupportedError: two activations of other scales, or types other than 8 bits.
        GraphError: shapes that do not broadcast.
    """
    if is_scalar(operands):
        return lower_compared_number(operands, compare)
    first, second = operands.input(0), operands.input(1)
    if first.quantization != second.quantization and node.operator != "logical_and":
        raise UnsupportedError(f"'{first.name}' and '{second.name}' have different scales; raw values are compared")
    return RawParams(_table(compare, operands))


@dataclass(frozen=True)
class ChoiceParams:
    """The params of SELECT: none."""


def lower_choice(node: Node, operands: Operands) -> ChoiceParams:  # noqa: ARG001
    """Check the types of SELECT.

    Raises:
        UnsupportedError: a branch with another scale than the result; raw values are chosen.
    """
    require_type(operands.input(0), (DType.UINT8,))
    for position in (1, 2):
        if operands.input(position).quantization != operands.output().quantization:
            raise UnsupportedError(f"'{operands.input(position).name}' has another scale than the result of the choice")
    return ChoiceParams()


def run_choice(params: ChoiceParams, condition: Array, x: Array, y: Array) -> tuple[Array, ...]:  # noqa: ARG001
    """Run SELECT: uint8[S, *shape], 8 bits [S, *shape] twice -> 8 bits [S, *shape]."""
    return (np.where(condition != 0, x, y),)


def run_pair(
    params: SumParams | MulParams | RawParams | ScalarParams, first: Array, second: Array
) -> tuple[Array, ...]:
    """Run it: quantized values or reals [S or 1, *shape] twice, shapes broadcast -> [S, *shape]."""
    if isinstance(params, ScalarParams):
        return run_scalar(params, first, second)
    if params.table is not None:
        return (run_pairs(params.table, first, second),)
    assert isinstance(params, SumParams)
    a, b = (array.astype(np.float32, copy=False) for array in align(first, second))
    with np.errstate(over="ignore", invalid="ignore"):
        y = (a + b if params.sign > 0 else a - b).astype(np.float16)
        return (np.maximum(y, np.float16(0)) if params.rectifies else y,)


def _is_rectified(node: Node) -> bool:
    return node.attributes.text("fused_activation_function", "none") != "none"


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
    """Choose the best multiplier of the larger ratio, and the other ratio's multiplier with the same shift."""
    best = find_multiplier(max(ratios), MULTIPLIER_BITS, 0)
    shift = np.repeat(best.shift, 2)
    scales = np.array(ratios)
    return Multiplier(round_half_away(scales * np.exp2(shift)).astype(np.int64), shift, scales)


_COMPARISONS = {
    "equal": "x = y of raw quantized values",
    "greater": "x > y of raw quantized values",
    "greater_equal": "x >= y of raw quantized values",
    "less": "x < y of raw quantized values",
    "less_equal": "x <= y of raw quantized values",
    "logical_and": "x and y",
}
_SUM, _SOURCE = (
    "y = sat(up((qa - Za) * ma, sa) {} up((qb - Zb) * mb, sb) + Zy)",
    "docs/rules/tpu_mlir_operators.md#elementwise-operators",
)
KERNELS = {
    "add": Kernel(partial(lower_sum, sign=1), run_pair, _SUM.format("+"), _SOURCE),
    "sub": Kernel(partial(lower_sum, sign=-1), run_pair, _SUM.format("-"), _SOURCE),
    "mul": Kernel(lower_product, run_pair, "y = sat(up((qa - Za) * (qb - Zb) * m, s) + Zy)", _SOURCE),
    **dict.fromkeys(
        ("select", "select_v2"), Kernel(lower_choice, run_choice, "condition ? x : y of raw quantized values", _SOURCE)
    ),
    "maximum": Kernel(partial(lower_extreme, choose=np.maximum), run_pair, "max(qa, qb)", _SOURCE),
    "minimum": Kernel(partial(lower_extreme, choose=np.minimum), run_pair, "min(qa, qb)", _SOURCE),
    **{
        name: Kernel(partial(lower_comparison, compare=getattr(np, name)), run_pair, rule, _SOURCE)
        for name, rule in _COMPARISONS.items()
    },
}
