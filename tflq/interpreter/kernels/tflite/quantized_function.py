"""EXP, ELU, GELU, LOG, SQRT and RSQRT of quantized tensors as tables: 256 entries for 8 bits, 513 points for int16.

All in float32, except RSQRT of int8. SQRT and RSQRT take int8 and int16, and refuse negative numbers at run time.

SQRT: y = clamp(int(f32(sqrt(f32(s_i (x - z_i))) / s_o)) + z_o); the quotient is cut toward zero, not rounded.

RSQRT, 1 / sqrt(x). int8: v = x - z_i; 127 for v = 0, else (r, k) = 1 / sqrt(v) (integer_functions.py) and
y = clamp(MBQ(MBQ(1, r, k + 20), m, e - 20) + z_o), (m, e) of 1 / f32(f32(sqrt(s_i)) s_o) in float64.
int16: a table of 513 points in float32, in which numbers up to 0 count as f32(32767 s_o).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tflq.arrays import Integers, Reals
from tflq.errors import UnsupportedError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.tflite.undefined_shifts import rounding_divide_by_pot_x86
from tflq.interpreter.numerics import transcendental
from tflq.interpreter.numerics.fixed_point import float_to_int32, scalar_multiplier, wrap_int32
from tflq.interpreter.numerics.fixed_point import multiply_by_quantized_multiplier as mbq
from tflq.interpreter.numerics.fixed_point import saturating_rounding_doubling_high_mul as srdhm
from tflq.interpreter.numerics.integer_functions import inverse_square_root
from tflq.interpreter.numerics.lookup_tables import (
    FloatFunction,
    Table,
    look_up,
    look_up_513,
    lut256,
    lut513,
    make_table,
)
from tflq.interpreter.operands.checks import (
    EIGHT_BITS,
    per_tensor,
    quantized_ends,
    require_same_type,
    require_symmetric,
    require_type,
)
from tflq.interpreter.registry import Kernel


@dataclass(frozen=True, eq=False)
class QuantizedFunction:
    """The table of one operator.

    Attributes:
        table: T[256] or int16[65536], by the raw bits of the quantized value.
        points: int16[513], from which the table of int16 is interpolated; None for 8 bits.
    """

    table: Table
    points: Table | None = None


def lower_function(
    operands: Operands, allowed: Collection[DType], function: FloatFunction, symmetric: bool = True
) -> QuantizedFunction:
    """Make the table of a function between two quantized tensors of equal type.

    Args:
        operands: Operands of the node.
        allowed: types that TFLite's kernel takes.
        function: takes and returns float32.
        symmetric: whether int16 must have zero points of 0; TFLite checks it for some operators only, and ignores
            zero points of int16 in the lookup.

    Raises:
        UnsupportedError: another type, or int16 with a zero point.
        GraphError: a tensor without scale.
    """
    source, output = operands.input(0), operands.output()
    dtype = require_type(source, allowed)
    require_same_type(source, output)
    (si, zi), (so, zo) = per_tensor(source), per_tensor(output)
    if dtype is not DType.INT16:
        return QuantizedFunction(lut256(function, dtype, si, zi, (so, zo)))
    if symmetric:
        require_symmetric(source, output)
    points = lut513(function, float(si), zi, float(so), np.float32)
    return QuantizedFunction(make_table(lambda code: look_up_513(points, code), dtype, dtype), points)


def _run(params: QuantizedFunction, x: Array) -> tuple[Array, ...]:
    return (look_up(params.table, x),)


def _lower_gelu(node: Node, operands: Operands) -> QuantizedFunction:
    function = partial(transcendental.gelu, approximate=node.attributes.boolean("approximate", False))
    return lower_function(operands, (*EIGHT_BITS, DType.INT16), function, symmetric=False)


def _lower_log(node: Node, operands: Operands) -> QuantizedFunction:  # noqa: ARG001
    scale, zero_point = per_tensor(operands.output())
    smallest = np.float32(operands.output().dtype.minimum - zero_point) * scale

    def logarithm(x: NDArray[np.floating]) -> NDArray[np.floating]:
        return np.where(x <= 0, smallest, transcendental.log(x))

    return lower_function(operands, (DType.INT8, DType.INT16), logarithm)


def _elu(x: NDArray[np.floating]) -> NDArray[np.floating]:
    return np.where(x < 0, transcendental.expm1(x), x)


SHIFT = 20
"""Keeps the intermediate value an integer."""


@dataclass(frozen=True, eq=False)
class NonNegative:
    """The table of one operator.

    Attributes:
        operator: Operator name, for messages.
        input_zero_point: the smallest quantized value that is allowed.
        table: int8[256] or int16[65536], by the raw bits of the code.
        multiplier: int32 of the rescale if the operator has one, else 0.
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
    dtype, si, zi, so, zo = quantized_ends(operands, (DType.INT8, DType.INT16))

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
    dtype, si, zi, so, zo = quantized_ends(operands, (DType.INT8, DType.INT16))
    if dtype is DType.INT16:
        return NonNegative("rsqrt", zi, lower_function(operands, (dtype,), _make_rsqrt(so)).table)
    multiplier, shift = scalar_multiplier(1.0 / float(np.sqrt(si) * so))

    def entry(code: Integers) -> Integers:
        root, root_shift = inverse_square_root(np.maximum(code - zi, 1))
        data = mbq(1, root, root_shift + SHIFT)
        scaled = _rescale(data, multiplier, shift - SHIFT)
        result = np.where(code == zi, 127, wrap_int32(scaled + zo))
        return np.clip(result, dtype.minimum, dtype.maximum)

    return NonNegative("rsqrt", zi, make_table(entry, dtype, dtype), multiplier, shift)


def _run_root(params: NonNegative, x: Array) -> tuple[Array, ...]:
    """Look up: T[S, *shape] -> T[S, *shape].

    Raises:
        UnsupportedError: a quantized value that denotes a negative number.
    """
    if x.size and int(np.min(x)) < params.input_zero_point:
        raise UnsupportedError(
            f"{params.operator}: the code {int(np.min(x))} is below the zero point {params.input_zero_point}, a "
            f"negative number; TFLite refuses it"
        )
    return (look_up(params.table, x),)


def _rescale(data: Integers, multiplier: int, shift: int) -> Integers:
    """Compute MBQ with a right shift that may exceed 31: x86's result then."""
    high = srdhm(wrap_int32(data << max(shift, 0)), multiplier)
    return rounding_divide_by_pot_x86(high, max(-shift, 0))


def _make_rsqrt(output_scale: np.float32) -> FloatFunction:
    def function(x: Reals) -> Reals:
        with np.errstate(divide="ignore", invalid="ignore"):
            root = np.float32(1) / np.sqrt(x.astype(np.float32))
        return np.asarray(np.where(x <= 0, np.float32(32767) * output_scale, root))

    return function


KERNELS = {
    "exp": Kernel(lambda _, operands: lower_function(operands, (DType.INT8, DType.INT16), transcendental.exp), _run,
        "e^x, as a table", "TFLite kernels/exp.cc"),
    "elu": Kernel(lambda _, operands: lower_function(operands, (DType.INT8,), _elu), _run,
        "x where x >= 0, else e^x - 1, as a table",
        "TFLite kernels/activations.cc (EluPrepare); the optimized kernel, there is no reference one"),
    "gelu": Kernel(_lower_gelu, _run,
        "x Phi(x), or its approximation by tanh, as a table",
        "TFLite kernels/activations.cc (GeluPrepare), internal/reference/gelu.h"),
    "log": Kernel(_lower_log, _run,
        "ln(x), as a table; where x <= 0 the smallest real value of the output, f32(s_o (lowest - z_o))",
        "TFLite kernels/elementwise.cc (LogLUTPrepare)"),
    "sqrt": Kernel(_lower_sqrt, _run_root,
        "sqrt(x), the quotient by the output's scale cut toward zero, as a table",
        "TFLite kernels/elementwise.cc (SqrtEvalQuantized)"),
    "rsqrt": Kernel(_lower_rsqrt, _run_root,
        "1 / sqrt(x), as a table", "TFLite kernels/elementwise.cc (RsqrtEvalQuantizedInt8, RsqrtEvalQuantizedInt16)"),
}  # fmt: skip
