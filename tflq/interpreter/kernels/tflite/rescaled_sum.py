"""Quantized ADD and SUB: both inputs are rescaled to one fine scale, are added, and the sum is rescaled.

Source: docs/rules/tflite/index.md.

v_k = MBQ((x_k - z_k) << left_shift, m_k, s_k); y = clamp(MBQ(v_1 + v_2, m_o, s_o) + z_o); SUB subtracts.
left_shift is 20 for 8 bits and 15 for int16. Everything is int32; rounding is that of MBQ (fixed_point.py).
Scales: t = f32(2 max(s_1, s_2)); s_k / t and t / f32(2^left_shift s_o) in float64.

LiteRT's optimized ADD of equal shapes computes the first elements as vectors: of 16 for int8 and int16, v_k =
SRDHM((x_k - z_k) << (left_shift + s_k), m_k); of 8 for uint8, v_k = SRDHM((x_k - z_k) << left_shift, m_k) >> -s_k.

XNNPACK, 8 bits: y = clamp((((x_1 - z_1) M_1 + (x_2 - z_2) M_2 + 2^(k-1)) >> k) + z_o), SUB with -M_2; a_i = f32(s_i /
s_o), k = 20 - floor(log2(max(a_1, a_2))), M_i = half_to_even(a_i * 2^k), 21 bits.
Example: s_1 = 0.5, s_2 = 0.25, s_o = 1: k = 21, M_1 = 2^20, M_2 = 2^19; x_1 - z_1 = 1, x_2 - z_2 = 2: y = 1 + z_o.

Source: TFLite kernels/add.cc, sub.cc (Prepare) and internal/reference/add.h, sub.h (AddElementwise, SubElementwise).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tflq.arrays import Integers
from tflq.errors import UnsupportedError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.numerics.fixed_point import (
    activation_range,
    norm,
    quantize_multiplier_smaller_than_one,
    saturating_rounding_doubling_high_mul,
    wrap_int32,
)
from tflq.interpreter.numerics.fixed_point import multiply_by_quantized_multiplier as mbq
from tflq.interpreter.numerics.lookup_tables import Table, is_used, look_up, look_up_pairs, make_pairs, make_table
from tflq.interpreter.operands.checks import EIGHT_BITS, per_tensor
from tflq.interpreter.samples import align, join_vectors_and_rest

WEIGHT_BITS = 20
"""Exponent of the larger weight of XNNPACK's sum: 2^20 <= M < 2^21."""


@dataclass(frozen=True, eq=False)
class RescaledPair:
    """The rescaling of two inputs to one fine scale, and of their result to the output's scale.

    Attributes:
        left_shift: Left shift of both inputs.
        input_zero_points: Zero points of both inputs.
        input_multipliers: Multipliers of both inputs, int32.
        input_shifts: Shifts of both inputs, 0 or negative.
        output_zero_point: Zero point of the output.
        output_multiplier: int32.
        output_shift: 0 or negative.
        minimum: smallest quantized value after the fused activation.
        maximum: largest quantized value.
    """

    left_shift: int
    input_zero_points: tuple[int, int]
    input_multipliers: tuple[int, int]
    input_shifts: tuple[int, int]
    output_zero_point: int
    output_multiplier: int
    output_shift: int
    minimum: int
    maximum: int

    def fine(self, k: int, codes: Integers) -> Integers:
        """Return v_k of quantized values of input k."""
        fine = wrap_int32((codes - self.input_zero_points[k]) << self.left_shift)
        return self.rescale_input(fine, self.input_multipliers[k], self.input_shifts[k])

    def rescale_input(self, fine: Integers, multiplier: int, shift: int) -> Integers:
        """Return fine * multiplier * 2^(shift-31)."""
        return mbq(fine, multiplier, shift)

    def finish(self, total: Integers) -> Integers:
        """Return the output's quantized values of a total in the fine scale, int32."""
        rescaled = mbq(total, self.output_multiplier, self.output_shift)
        return np.clip(rescaled + self.output_zero_point, self.minimum, self.maximum)


@dataclass(frozen=True, eq=False)
class RescaledSum(RescaledPair):
    """The params of one ADD or SUB: left_shift is 20 or 15.

    Attributes:
        sign: Sign of the second input: 1 for ADD, -1 for SUB.
        dtype: Type of all three tensors.
        first: int32[65536]: v_1 of every quantized value, by its raw bits; int16 only.
        second: the same for the second input.
        pairs: int8[65536] or uint8[65536]: the result of every pair of quantized values, by 256 raw(x_1) + raw(x_2); 8
            bits only.
        vectors: Rule of the elements that LiteRT's optimized kernel computes as vectors; None if there are none.
    """

    sign: int
    dtype: DType
    first: Table | None = None
    second: Table | None = None
    pairs: Array | None = None
    vectors: RescaledSum | None = None

    @property
    def depends_on_place(self) -> bool:
        """Whether elements of the last incomplete vector follow another rule."""
        return self.vectors is not None

    @property
    def vector_size(self) -> int:
        """Elements of one vector."""
        return 8 if self.dtype is DType.UINT8 else 16


class VectorSum(RescaledSum):
    """The same sum for elements that LiteRT's optimized kernel computes as vectors."""

    def rescale_input(self, fine: Integers, multiplier: int, shift: int) -> Integers:
        """Return fine * multiplier * 2^(shift-31): one rounding, or for uint8 the shift cut."""
        if self.dtype is DType.UINT8:
            return saturating_rounding_doubling_high_mul(fine, multiplier) >> -shift
        return saturating_rounding_doubling_high_mul(fine >> -shift, multiplier)


def add_vectors(params: RescaledSum) -> RescaledSum:
    """Return the params of LiteRT's optimized ADD of equal shapes."""
    vectors = _add_tables(VectorSum(**{**vars(params), "first": None, "second": None, "pairs": None}))
    return replace(params, vectors=vectors)


def lower_rescaled_sum(sign: int, node: Node, operands: Operands) -> RescaledSum:
    """Decide multipliers and tables.

    Raises:
        UnsupportedError: the output scale is so small against the inputs' that the output multiplier is 1 or more.
            TFLite aborts the process for ADD, and for SUB at 1; above 1 SUB shifts by a negative count, which C++
            leaves undefined.
    """
    first, second, output = operands.input(0), operands.input(1), operands.output()
    (s1, z1), (s2, z2), (so, zo) = per_tensor(first), per_tensor(second), per_tensor(output)
    dtype = output.dtype
    left_shift = 20 if dtype in EIGHT_BITS else 15
    twice = float(np.float32(2) * max(s1, s2))
    divisor = float(np.float32(1 << left_shift) * so)
    if not 0.0 < twice / divisor < 1.0:
        raise UnsupportedError(
            f"scales {s1}, {s2} -> {so} give the output multiplier {twice / divisor:.6g}; it must be between 0 and 1, "
            f"TFLite aborts or is undefined beyond: give the output a scale above {twice / (1 << left_shift):.6g}"
        )
    (m1, e1), (m2, e2), (mo, eo) = (
        quantize_multiplier_smaller_than_one(real) for real in (float(s1) / twice, float(s2) / twice, twice / divisor)
    )
    activation = node.attributes.text("fused_activation_function", "none")
    low, high = activation_range(activation, so, zo, dtype.minimum, dtype.maximum)
    return _add_tables(RescaledSum(left_shift, (z1, z2), (m1, m2), (e1, e2), zo, mo, eo, low, high, sign, dtype))


def _add_tables(params: RescaledSum) -> RescaledSum:
    dtype = params.dtype
    if dtype in EIGHT_BITS:
        return replace(params, pairs=make_pairs(lambda x, y: _compute(params, x, y), dtype, dtype, dtype))
    return replace(params, first=_table(params, 0), second=_table(params, 1))


@dataclass(frozen=True, eq=False)
class WeightedSum:
    """The params of one ADD or SUB as XNNPACK computes them.

    Attributes:
        input_zero_points: Zero points of both inputs.
        weights: Factors M_1 and M_2; negative for the second input of SUB.
        shift: Right shift k.
        output_zero_point: Zero point of the output.
        minimum: Smallest quantized value after the fused activation.
        maximum: Largest quantized value.
        pairs: Table T8[65536] of every pair of quantized values, by 256 raw(x_1) + raw(x_2).
    """

    input_zero_points: tuple[int, int]
    weights: tuple[int, int]
    shift: int
    output_zero_point: int
    minimum: int
    maximum: int
    pairs: Array | None = None


def lower_weighted_sum(sign: int, node: Node, operands: Operands) -> WeightedSum:
    """Decide weights, shift and table of an ADD (sign 1) or SUB (sign -1) of 8 bits."""
    first, second, output = operands.input(0), operands.input(1), operands.output()
    (s1, z1), (s2, z2), (so, zo) = per_tensor(first), per_tensor(second), per_tensor(output)
    dtype = output.dtype
    a, b = s1 / so, s2 / so
    shift = WEIGHT_BITS - (int(np.frexp(max(a, b))[1]) - 1)
    m1, m2 = (int(np.rint(np.ldexp(np.float64(ratio), shift))) for ratio in (a, b))
    activation = node.attributes.text("fused_activation_function", "none")
    low, high = activation_range(activation, so, zo, dtype.minimum, dtype.maximum)
    params = WeightedSum((z1, z2), (m1, sign * m2), shift, zo, low, high)
    return replace(params, pairs=make_pairs(lambda x, y: _weigh_pair(params, x, y), dtype, dtype, dtype))


def run_weighted_sum(params: WeightedSum, first: Array, second: Array) -> tuple[Array, ...]:
    """Run ADD or SUB of 8 bits: T[S or 1, *shape] twice, shapes broadcast -> T[S, *shape]."""
    x, y = align(first, second)
    if is_used(params.pairs):
        return (look_up_pairs(params.pairs, x, y),)
    return (_weigh_pair(params, x.astype(np.int64), y.astype(np.int64)).astype(x.dtype),)


def run_rescaled_sum(params: RescaledSum, first: Array, second: Array) -> tuple[Array, ...]:
    """Run ADD or SUB.

    Args:
        params: Result of `lower_rescaled_sum`.
        first: T[S or 1, *shape].
        second: T[S or 1, *shape]; shapes broadcast.

    Returns:
        T[S, *shape].
    """
    if params.vectors is None:
        return (_run_rule(params, first, second),)
    vectors, rest = _run_rule(params.vectors, first, second), _run_rule(params, first, second)
    return (join_vectors_and_rest(vectors, rest, params.vector_size),)


def _run_rule(params: RescaledSum, first: Array, second: Array) -> Array:
    x, y = align(first, second)
    if is_used(params.pairs):
        return look_up_pairs(params.pairs, x, y)
    if is_used(params.first) and is_used(params.second):
        v1 = look_up(params.first, x).astype(np.int64)
        v2 = look_up(params.second, y).astype(np.int64)
        return params.finish(wrap_int32(v1 + params.sign * v2)).astype(params.dtype.storage)
    return _compute(params, x.astype(np.int64), y.astype(np.int64)).astype(params.dtype.storage)


def _table(params: RescaledSum, k: int) -> Table:
    return make_table(lambda codes: params.fine(k, codes), params.dtype, DType.INT32)


def _weigh_pair(params: WeightedSum, x: Integers, y: Integers) -> Integers:
    (z1, z2), (m1, m2) = params.input_zero_points, params.weights
    total = norm((x - z1) * m1 + (y - z2) * m2, params.shift)
    return np.clip(total + params.output_zero_point, params.minimum, params.maximum)


def _compute(params: RescaledSum, x: Integers, y: Integers) -> Integers:
    return params.finish(wrap_int32(params.fine(0, x) + params.sign * params.fine(1, y)))
