"""Functions of one byte as tables: sat(rha(f((q - Zx) * Sx) / Sy) + Zy), f in float64 (docs/tpu_mlir.md, 7).

RELU that stays alone is symmetric: max(q, 0) in the input's scale (docs/tpu_mlir.md, 5).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.tpu_mlir.rounding import saturate
from tflq.interpreter.numerics.fixed_point import Integers, round_half_away
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


def table_of(rule: Callable[[Integers], Array], operands: Operands) -> TableParams:
    """Return sat(rule(q)) for every quantized value q of the input, stored as the output; read-only.

    Raises:
        UnsupportedError: a type of more than 8 bits.
    """
    source, output = operands.input(0), operands.output()
    for tensor in (source, output):
        require_type(tensor, EIGHT_BITS)
    return TableParams(make_table(lambda codes: saturate(rule(codes), output.dtype), source.dtype, output.dtype))


def lower_curve(node: Node, operands: Operands, function: Function) -> TableParams:  # noqa: ARG001
    """Return the table of a real function; raises as `table_of`."""
    x, y = operands.input(0).affine, operands.output().affine

    def rule(codes: Integers) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            real = function((codes - x.zero_point[0]) * np.float64(x.scale[0]))
            return np.asarray(round_half_away(real / np.float64(y.scale[0])) + y.zero_point[0])

    return table_of(rule, operands)


def run_curve(params: TableParams, x: Array) -> tuple[Array, ...]:
    """Look the quantized values up: 8 bits [S, *shape] -> 8 bits [S, *shape]."""
    return (np.asarray(look_up(params.table, x)),)


def lower_relu(node: Node, operands: Operands) -> TableParams:  # noqa: ARG001
    """Return the table of RELU; raises as `table_of`."""
    return table_of(lambda codes: np.maximum(codes, 0), operands)


_FUNCTIONS: dict[str, tuple[Function, str]] = {
    "elu": (lambda x: np.where(x < 0, np.expm1(np.minimum(x, 0.0)), x), "x where x >= 0, else exp(x) - 1"),
    "exp": (np.exp, "exp(x)"),
    "hard_swish": (lambda x: x * np.clip(x / 6.0 + 0.5, 0.0, 1.0), "x * clip(x / 6 + 1 / 2, 0, 1)"),
    "logistic": (lambda x: 1.0 / (1.0 + np.exp(-x)), "1 / (1 + exp(-x))"),
    "sqrt": (lambda x: np.sqrt(np.maximum(x, 0.0)), "sqrt(x), 0 where x is negative"),
    "tanh": (np.tanh, "tanh(x)"),
}
KERNELS = {
    operator: Kernel(partial(lower_curve, function=function), run_curve, formula, "docs/tpu_mlir.md, 7")
    for operator, (function, formula) in _FUNCTIONS.items()
} | {"relu": Kernel(lower_relu, run_curve, "max(q, 0)", "docs/tpu_mlir.md, 5")}
