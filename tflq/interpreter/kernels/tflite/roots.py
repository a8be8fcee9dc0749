"""SQRT and RSQRT of quantised tensors, int8 and int16, as tables; negative numbers are refused at run time.

SQRT: y = clamp(int(f32(sqrt(f32(s_i (x - z_i))) / s_o)) + z_o); the quotient is cut toward zero, not rounded.

RSQRT, 1 / sqrt(x). int8: v = x - z_i; 127 for v = 0, else (r, k) = 1 / sqrt(v) (integer_functions.py) and
y = clamp(MBQ(MBQ(1, r, k + 20), m, e - 20) + z_o), (m, e) of 1 / f32(f32(sqrt(s_i)) s_o) in float64.
int16: a table of 513 points in float32 (quantised_function.py), where numbers up to 0 count as f32(32767 s_o).

SQRT: sqrt(x), the quotient by the output's scale cut toward zero, as a table. Source: TFLite kernels/elementwise.cc
(SqrtEvalQuantized).
RSQRT: 1 / sqrt(x), as a table. Source: TFLite kernels/elementwise.cc (RsqrtEvalQuantizedInt8, RsqrtEvalQuantizedInt16).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.arrays import Integers, Reals
from tflq.errors import UnsupportedError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.tflite.quantised_function import lower_function
from tflq.interpreter.kernels.tflite.undefined_shifts import rounding_divide_by_pot_x86
from tflq.interpreter.numerics.fixed_point import float_to_int32, scalar_multiplier, wrap_int32
from tflq.interpreter.numerics.fixed_point import multiply_by_quantized_multiplier as mbq
from tflq.interpreter.numerics.fixed_point import saturating_rounding_doubling_high_mul as srdhm
from tflq.interpreter.numerics.integer_functions import inverse_square_root
from tflq.interpreter.numerics.lookup_tables import FloatFunction, Table, look_up, make_table
from tflq.interpreter.operands.checks import quantised_ends
from tflq.interpreter.registry import Kernel

SHIFT = 20
"""Keeps the intermediate value an integer."""


@dataclass(frozen=True, eq=False)
class NonNegative:
    """The table of one operator.

    Attributes:
        operator: for messages.
        input_zero_point: the smallest quantized value that is allowed.
        table: int8[256] or int16[65536], by the raw bits of the code.
        multiplier: int32 of the rescale where the operator has one, else 0.
        shift: positive is left.
    """

    operator: str
    input_zero_point: int
    table: Table
    multiplier: int = 0
    shift: int = 0


def _lower_sqrt(node: Node, operands: Operands) -> NonNegative:  # noqa: ARG001
    """Make the table.

    Raises:
        UnsupportedError: a type that TFLite's kernel does not take, or int16 with a zero point.
        GraphError: a tensor without scale.
    """
    dtype, si, zi, so, zo = quantised_ends(operands, (DType.INT8, DType.INT16))

    def entry(code: Integers) -> Integers:
        root = np.sqrt(si * np.maximum(code - zi, 0).astype(np.float32))
        return np.clip(wrap_int32(float_to_int32(root / so) + zo), dtype.minimum, dtype.maximum)

    return NonNegative("sqrt", zi, make_table(entry, dtype, dtype))


def _lower_rsqrt(node: Node, operands: Operands) -> NonNegative:  # noqa: ARG001
    """Make the table.

    Raises:
        UnsupportedError: a type that TFLite's kernel does not take, or int16 with a zero point.
        GraphError: a tensor without scale.
    """
    dtype, si, zi, so, zo = quantised_ends(operands, (DType.INT8, DType.INT16))
    if dtype is DType.INT16:
        return NonNegative("rsqrt", zi, lower_function(operands, (dtype,), _real(so)).table)
    multiplier, shift = scalar_multiplier(1.0 / float(np.sqrt(si) * so))

    def entry(code: Integers) -> Integers:
        root, root_shift = inverse_square_root(np.maximum(code - zi, 1))
        data = mbq(1, root, root_shift + SHIFT)
        scaled = _rescale(data, multiplier, shift - SHIFT)
        result = np.where(code == zi, 127, wrap_int32(scaled + zo))
        return np.clip(result, dtype.minimum, dtype.maximum)

    return NonNegative("rsqrt", zi, make_table(entry, dtype, dtype), multiplier, shift)


def _run(params: NonNegative, x: Array) -> tuple[Array, ...]:
    """Look up: T[S, *shape] -> T[S, *shape].

    Raises:
        UnsupportedError: a quantized value stands for a negative number.
    """
    if x.size and int(np.min(x)) < params.input_zero_point:
        raise UnsupportedError(
            f"{params.operator}: the code {int(np.min(x))} is below the zero point {params.input_zero_point}, a "
            f"negative number; TFLite refuses it"
        )
    return (look_up(params.table, x),)


def _rescale(data: Integers, multiplier: int, shift: int) -> Integers:
    """MBQ whose right shift may exceed 31: x86's result then."""
    high = srdhm(wrap_int32(data << max(shift, 0)), multiplier)
    return rounding_divide_by_pot_x86(high, max(-shift, 0))


def _real(output_scale: np.float32) -> FloatFunction:
    def function(x: Reals) -> Reals:
        with np.errstate(divide="ignore", invalid="ignore"):
            root = np.float32(1) / np.sqrt(x.astype(np.float32))
        return np.asarray(np.where(x <= 0, np.float32(32767) * output_scale, root))

    return function


KERNELS = {
    "sqrt": Kernel(_lower_sqrt, _run),
    "rsqrt": Kernel(_lower_rsqrt, _run),
}
