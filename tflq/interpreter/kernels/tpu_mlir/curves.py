"""Functions of one byte as tables: sat(rha(f((q - Zx) * Sx) / Sy) + Zy), f in float64 (docs/tpu_mlir.md, 7).

RELU that stays alone is symmetric: max(q, 0) in the input's scale (docs/tpu_mlir.md, 5).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tflq.arrays import Integers
from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.tpu_mlir.multiplier import saturate
from tflq.interpreter.numerics.fixed_point import round_half_away
from tflq.interpreter.numerics.lookup_tables import Table, look_up, make_table
from tflq.interpreter.operands.checks import EIGHT_BITS, require_type
from tflq.interpreter.registry import Kernel

Function = Callable[[NDArray[np.float64]], NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class TableParams:
    """A function of one byte.

    Attributes:
        table: 256 quantized values of the output, indexed by the byte of the input.
    """

    table: Table


def table_of(rule: Callable[[Integers], Array], operands: Operands, position: int = 0) -> TableParams:
    """Return sat(rule(q)) for every quantized value q of an input, stored as the output; read-only.

    Raises:
        UnsupportedError: a type of more than 8 bits.
    """
    source, output = operands.input(position), operands.output()
    for tensor in (source, output):
        require_type(tensor, EIGHT_BITS)
    return TableParams(make_table(lambda codes: saturate(rule(codes), output.dtype), source.dtype, output.dtype))


def lower_curve(node: Node, operands: Operands, function: Function, position: int = 0) -> TableParams:  # noqa: ARG001
    """Return the table of a real function; raises as `table_of`."""
    x, y = operands.input(position).affine, operands.output().affine

    def rule(codes: Integers) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            real = function((codes - x.zero_point[0]) * np.float64(x.scale[0]))
            return np.asarray(round_half_away(real / np.float64(y.scale[0])) + y.zero_point[0])

    return table_of(rule, operands, position)


def run_curve(params: TableParams, x: Array) -> tuple[Array, ...]:
    """Look the quantized values up: 8 bits [S, *shape] -> 8 bits [S, *shape]."""
    return (np.asarray(look_up(params.table, x)),)


def lower_relu(node: Node, operands: Operands) -> TableParams:  # noqa: ARG001
    """Return the table of RELU; raises as `table_of`."""
    return table_of(lambda codes: np.maximum(codes, 0), operands)


def lower_abs(node: Node, operands: Operands) -> TableParams:  # noqa: ARG001
    """Return the table of ABS, which takes no zero point off: a flaw of TPU-MLIR; raises as `table_of`."""
    return table_of(np.abs, operands)


def by_c_library(function: Callable[[float], float]) -> Function:
    """Return a function of `math` over arrays: the C library's, whose last place decides ties.

    tanh(19.0016) is the number below 1 there and 1 in numpy, and 127.5 steps are a tie.
    """

    def one(value: float) -> float:
        try:
            return function(value)
        except OverflowError:
            return math.inf

    return lambda x: np.array([one(value) for value in x.reshape(-1).tolist()], np.float64).reshape(x.shape)


_EXP = by_c_library(math.exp)
_LOG = by_c_library(lambda x: math.log(x) if x > 0 else -math.inf if x == 0 else 0.0)


def _gelu(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return 0.5 * x * (1.0 + by_c_library(lambda value: math.erf(value / math.sqrt(2.0)))(x))


_FUNCTIONS: dict[str, tuple[Function, str]] = {
    "ceil": (np.ceil, "the next integer above"),
    "cos": (by_c_library(math.cos), "cos(x)"),
    "elu": (by_c_library(lambda x: math.expm1(x) if x < 0 else x), "x where x >= 0, else exp(x) - 1"),
    "exp": (_EXP, "exp(x)"),
    "floor": (np.floor, "the next integer below"),
    "gelu": (_gelu, "x / 2 * (1 + erf(x / sqrt(2)))"),
    "hard_swish": (lambda x: x * np.clip(x / 6.0 + 0.5, 0.0, 1.0), "x * clip(x / 6 + 1 / 2, 0, 1)"),
    "log": (_LOG, "log(x), 0 where x is negative"),
    "logistic": (lambda x: 1.0 / (1.0 + _EXP(-x)), "1 / (1 + exp(-x))"),
    "round": (np.rint, "the nearest integer, ties to even"),
    "sign": (np.sign, "-1, 0 or 1"),
    "silu": (lambda x: x / (1.0 + _EXP(-x)), "x / (1 + exp(-x))"),
    "sin": (by_c_library(math.sin), "sin(x)"),
    "softsign": (lambda x: x / (1.0 + np.abs(x)), "x / (1 + |x|)"),
    "sqrt": (lambda x: np.sqrt(np.maximum(x, 0.0)), "sqrt(x), 0 where x is negative"),
    "tanh": (by_c_library(math.tanh), "tanh(x)"),
}
_RECTIFIERS = ("relu", "relu6", "relu_0_to_1")
KERNELS = {
    operator: Kernel(partial(lower_curve, function=function), run_curve, formula, "docs/tpu_mlir.md, 7")
    for operator, (function, formula) in _FUNCTIONS.items()
}
KERNELS |= {operator: Kernel(lower_relu, run_curve, "max(q, 0)", "docs/tpu_mlir.md, 5") for operator in _RECTIFIERS}
KERNELS["abs"] = Kernel(lower_abs, run_curve, "|q| of the raw quantized value", "docs/tpu_mlir.md, 5")
