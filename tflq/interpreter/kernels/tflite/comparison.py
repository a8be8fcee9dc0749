"""Comparisons in TFLite's integer arithmetic: both sides are rescaled to one fine scale, then integers are compared.

v_k = RDBP(SRDHM((x_k - z_k) * 256, m_k), -e_k), (m_k, e_k) the multiplier of the scale s_k itself
(docs/rules/tflite/index.md).
int8 and uint8 always; int16 in EQUAL and NOT_EQUAL if it is quantized (the other four compare raw int16 quantized
values).

A scale above 1 has e_k > 0: C++ leaves the shift undefined, and x86 makes nearly everything equal
(undefined_shifts.py). At exactly 1 TFLite aborts the process.

Source: TFLite kernels/comparisons.cc (ComparisonQuantized), internal/reference/comparisons.h (ComparisonWithScaling).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tflq.errors import UnsupportedError
from tflq.graph import Array, DType, Node, Operands, Tensor
from tflq.interpreter.kernels.plain.comparison import (
    COMPARISONS,
    PlainComparison,
    check_comparison,
    comparisons,
    lower_plain_comparison,
    run_plain_comparison,
)
from tflq.interpreter.kernels.tflite.undefined_shifts import rounding_divide_by_pot_x86
from tflq.interpreter.numerics.fixed_point import quantize_multiplier
from tflq.interpreter.numerics.fixed_point import saturating_rounding_doubling_high_mul as srdhm
from tflq.interpreter.numerics.lookup_tables import all_codes, look_up
from tflq.interpreter.operands.checks import EIGHT_BITS, is_quantized, per_tensor
from tflq.interpreter.samples import align

LEFT_SHIFT = 8


@dataclass(frozen=True, eq=False)
class QuantizedComparison:
    """The params of one comparison.

    Attributes:
        operator: Operator name.
        zero_points: Zero points of both inputs.
        multipliers: Multipliers of both inputs, int32.
        shifts: Shifts of both inputs; positive is left, and undefined in C++.
        first: int32[256] or int32[65536]: v_1 of every quantized value, by its raw bits.
        second: the same for the second input.
    """

    operator: str
    zero_points: tuple[int, int]
    multipliers: tuple[int, int]
    shifts: tuple[int, int]
    first: NDArray[np.int32]
    second: NDArray[np.int32]


def _lower(operator: str, node: Node, operands: Operands) -> QuantizedComparison | PlainComparison:
    """Decide multipliers and tables.

    Raises:
        UnsupportedError: types that TFLite's kernel does not take, or a scale of 1.
        GraphError: shapes that do not broadcast, or 8 bits without scale.
    """
    first, second = operands.input(0), operands.input(1)
    rescaled_int16 = first.dtype is DType.INT16 and is_quantized(first) and operator in ("equal", "not_equal")
    if first.dtype not in EIGHT_BITS and not rescaled_int16:
        return lower_plain_comparison(operator, node, operands)
    check_comparison(operands)
    (m1, e1), (m2, e2) = _multiplier(first), _multiplier(second)
    (_, z1), (_, z2) = per_tensor(first), per_tensor(second)
    tables = [_table(first.dtype, z, m, e) for z, m, e in ((z1, m1, e1), (z2, m2, e2))]
    return QuantizedComparison(operator, (z1, z2), (m1, m2), (e1, e2), *tables)


def _run(params: QuantizedComparison | PlainComparison, first: Array, second: Array) -> tuple[Array, ...]:
    """Compare: T[S or 1, *shape] twice, shapes broadcast -> bool[S, *shape]."""
    if isinstance(params, PlainComparison):
        return run_plain_comparison(params, first, second)
    x, y = align(first, second)
    compare = COMPARISONS[params.operator]
    return (np.asarray(compare(look_up(params.first, x), look_up(params.second, y))),)


def _multiplier(tensor: Tensor) -> tuple[int, int]:
    scale, _ = per_tensor(tensor)
    if scale == 1:
        raise UnsupportedError(f"tensor '{tensor.name}' has scale 1; TFLite aborts the process there")
    multiplier, shift = quantize_multiplier(float(scale))
    return int(multiplier), int(shift)


def _table(dtype: DType, zero_point: int, multiplier: int, shift: int) -> NDArray[np.int32]:
    shifted = (all_codes(dtype) - zero_point) << LEFT_SHIFT
    return rounding_divide_by_pot_x86(srdhm(shifted, multiplier), -shift).astype(np.int32)


KERNELS = comparisons(_lower, _run)
