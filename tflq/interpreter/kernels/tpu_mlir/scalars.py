"""ADD, SUB, MUL, DIV, MAXIMUM, MINIMUM, POW and NEG beside one number, as tables (docs/rules/tpu_mlir_operators.md).

x + c, x - c:  y = sat(up(q * m + (rha(c / Sy) << s), s)), 8-bit m, s >= 0 about Sx / Sy (AddConst).
c - x:         y = sat(up((rha(c / Sy) << s) - (q - Zx) * m, s) + Zy), m and s as above (SubConst).
x * c, x / c, -x: y = sat(up((q - Zx) * m, s) + Zy): the range is multiplied, so m is 1 or -1 and s is 0 (MulConst), but
where a negative number makes signed integers of unsigned ones.
max, min: y = sat(max(q - Zx, rha(c / S))), without Zy: a flaw of TPU-MLIR where Z is not 0 (MaxConst, MinConst).
c / x, x ^ c: tables of real functions; c / 0 is 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tflq.errors import UnsupportedError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.tpu_mlir.activations import TableParams, lower_curve, run_curve, table_of
from tflq.interpreter.kernels.tpu_mlir.multiplier import Multiplier, find_multiplier, shift_half_up
from tflq.interpreter.numerics.fixed_point import INT32_MAX, INT32_MIN, round_half_away
from tflq.interpreter.registry import Kernel

MULTIPLIER_BITS = 8


@dataclass(frozen=True, eq=False)
class ScalarParams:
    """The params of one operator beside one number.

    Attributes:
        table: of the activation's quantized values.
        position: of the activation.
        rescale: m and s; None for functions of reals.
        number: as TPU-MLIR stores it, in quantized values; None where there is none.
    """

    table: TableParams
    position: int
    rescale: Multiplier | None = None
    number: int | None = None


def floor_of(node: Node, operands: Operands) -> int:
    """Return the least result: Zy where a rectifier is fused."""
    output, fused = operands.output(), node.attributes.text("fused_activation_function", "none")
    return output.dtype.minimum if fused == "none" else int(output.affine.zero_point[0])


def is_scalar(operands: Operands) -> bool:
    """Whether one operand is a float32 constant."""
    return any(operands.input(p).is_constant and operands.input(p).dtype is DType.FLOAT32 for p in (0, 1))


def lower_added_number(operands: Operands, sign: int, floor: int) -> ScalarParams:
    """Decide the params of x + c, x - c or c - x.

    Args:
        operands: x of 8 bits, c float32.
        sign: 1, or -1 for a difference.
        floor: least result.

    Raises:
        UnsupportedError: a ratio of scales without multiplier.
    """
    position, number = _operand(operands)
    output = operands.output()
    s_x, s_y = float(operands.input(position).affine.scale[0]), float(output.affine.scale[0])
    multiplier = find_multiplier(s_x / s_y, MULTIPLIER_BITS, 0)
    m, s = multiplier.multiplier[0], multiplier.shift[0]
    steps = int(round_half_away(sign * number / s_y)) << int(s)
    if position == 1 and sign < 0:
        z_x, z_y = int(operands.input(position).affine.zero_point[0]), int(output.affine.zero_point[0])
        steps = (int(round_half_away(number / s_y)) << int(s)) + z_x * int(m)
        table = table_of(lambda q: np.maximum(shift_half_up(steps - q * m, s) + z_y, floor), operands, position)
    else:
        table = table_of(lambda q: np.maximum(shift_half_up(q * m + steps, s), floor), operands, position)
    return ScalarParams(table, position, multiplier, steps)


def lower_factor(operands: Operands, factor: int | None = None, is_factor: bool = True) -> ScalarParams:
    """Decide the params of x * c, whose range is that of x times c: up((q - Zx) * m, s) + Zy; m, s about c * Sx / Sy.

    TPU-MLIR fuses a rectifier into it and then loses it.
    """
    position, number = _operand(operands) if factor is None else (0, float(factor))
    x, y = operands.input(position).affine, operands.output().affine
    z_x, z_y = int(x.zero_point[0]), int(y.zero_point[0])
    scale = abs(number if is_factor else 1.0 / number)
    multiplier = find_multiplier(scale * float(x.scale[0]) / float(y.scale[0]), MULTIPLIER_BITS)
    m, s = multiplier.multiplier[0] * int(np.sign(number)), multiplier.shift[0]
    table = table_of(lambda q: shift_half_up((q - z_x) * m, s) + z_y, operands, position)
    return ScalarParams(table, position, replace(multiplier, multiplier=np.array([m])))


def lower_bound(operands: Operands, choose: np.ufunc, asymmetric: bool) -> ScalarParams:
    """Decide the params of max(x, c) or min(x, c).

    MINIMUM of one element compares the quantized value with the number itself.
    """
    position, number = _operand(operands)
    if choose is np.minimum and operands.input(position).size == 1:
        return ScalarParams(table_of(lambda q: np.floor(choose(q, number)), operands, position), position)
    x = operands.input(position).affine
    zero_point = int(x.zero_point[0]) if asymmetric else 0
    steps = int(round_half_away(number / float(x.scale[0])))
    steps = steps if INT32_MIN <= steps <= INT32_MAX else INT32_MIN  # as the tool's conversion overflows
    table = table_of(lambda q: choose(q - zero_point, steps), operands, position)
    return ScalarParams(table, position, None, steps)


def lower_compared_number(operands: Operands, compare: np.ufunc) -> ScalarParams:
    """Decide the params of a comparison with c, in either order."""
    position, number = _operand(operands)
    x = operands.input(position).affine
    steps = float(round_half_away(number / float(x.scale[0]))) + int(x.zero_point[0])
    table = table_of(lambda q: np.asarray(compare(*((q, steps), (steps, q))[position]), np.int64), operands, position)
    return ScalarParams(table, position)


def lower_quotient(node: Node, operands: Operands) -> ScalarParams:
    """Decide the params of x / c, or of c / x.

    Raises:
        UnsupportedError: two activations, whose quotient is float32.
    """
    if not is_scalar(operands):
        raise UnsupportedError("a quotient of two activations has no integers; TPU-MLIR computes it in float32")
    position, number = _operand(operands)
    if position == 0:
        return lower_factor(operands, is_factor=False)

    def function(x: NDArray[np.float64]) -> NDArray[np.float64]:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.where(x == 0, 0.0, number / x))

    return ScalarParams(lower_curve(node, operands, function, position), position)


def lower_power(node: Node, operands: Operands) -> ScalarParams:
    """Decide the params of x ^ c: a table; what is no number becomes 0."""
    position, number = _operand(operands)
    if position != 0:
        raise UnsupportedError("a power whose exponent is computed; TPU-MLIR's tables have a constant one")

    def function(x: NDArray[np.float64]) -> NDArray[np.float64]:
        with np.errstate(divide="ignore", invalid="ignore"):
            powers = np.power(x, np.float64(number))
        return np.asarray(np.where(np.isfinite(powers), powers, 0.0))

    return ScalarParams(lower_curve(node, operands, function), 0)


def run_scalar(params: ScalarParams, first: Array, second: Array) -> tuple[Array, ...]:
    """Look the activation up: 8 bits [S, *shape] -> 8 bits [S, *shape]."""
    return run_curve(params.table, (first, second)[params.position])


def lower_negation(node: Node, operands: Operands) -> ScalarParams:  # noqa: ARG001
    """Decide the params of NEG: x * -1."""
    return lower_factor(operands, -1)


def run_negation(params: ScalarParams, x: Array) -> tuple[Array, ...]:
    """Run NEG: 8 bits [S, *shape] -> 8 bits [S, *shape]."""
    return run_curve(params.table, x)


def _operand(operands: Operands) -> tuple[int, float]:
    """Return the position of the activation, and the number."""
    position = 0 if operands.input(1).is_constant and operands.input(1).dtype is DType.FLOAT32 else 1
    return position, float(operands.constant(1 - position).reshape(-1)[0])


KERNELS = {
    "div": Kernel(lower_quotient, run_scalar, "x / c: q; c / x: a table", "docs/rules/tpu_mlir_operators.md"),
    "neg": Kernel(
        lower_negation, run_negation, "sat(Zy - (q - Zx))", "docs/rules/tpu_mlir_operators.md#elementwise-operators"
    ),
    "pow": Kernel(lower_power, run_scalar, "x ^ c as a table", "docs/rules/tpu_mlir_operators.md#tables-and-softmax"),
}
