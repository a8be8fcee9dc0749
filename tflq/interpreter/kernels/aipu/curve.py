"""Functions by table: Exp, Square, Sqrt, Rsqrt, Log, Floor, Ceil, Round, Cosine, Sine, BNLL and activations.

Source: Compass Optimizer, ops/activation.py, apply_lut.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.aipu.tables import Table, table_of
from tflq.interpreter.kernels.aipu.written import Written

Doubles = NDArray[np.float64]
Function = Callable[[Doubles], Doubles]


def _sigmoid(x: Doubles) -> Doubles:
    return 1 / (1 + np.exp(-x))


def _hard_swish(x: Doubles) -> Doubles:
    return x * np.clip(x + 3, 0, 6) / 6


def _softplus(x: Doubles) -> Doubles:
    softened: Doubles = np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))
    return softened


def _elu(x: Doubles, alpha: float) -> Doubles:
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def _gelu(x: Doubles, is_tanh: bool) -> Doubles:
    """Return x * Phi(x), Phi by the error function or by its approximation with tanh."""
    if is_tanh:
        of_normal: Doubles = np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))
    else:
        of_normal = np.array([math.erf(v) for v in (x / np.sqrt(2)).reshape(-1)], np.float64).reshape(x.shape)
    return 0.5 * x * (1 + of_normal)


_FUNCTIONS: dict[str, Function] = {
    "bnll": _softplus,
    "ceil": np.ceil,
    "cosine": np.cos,
    "exp": np.exp,
    "floor": np.floor,
    "log": np.log,
    "round": np.rint,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sine": np.sin,
    "sqrt": np.sqrt,
    "square": np.square,
    "HARDSWISH": _hard_swish,
    "SIGMOID": _sigmoid,
    "SILU": lambda x: x * _sigmoid(x),
    "SOFTPLUS": _softplus,
    "SOFTSIGN": lambda x: x / (1 + np.abs(x)),
    "TANH": np.tanh,
}
PARAMETRIC = ("ELU", "GELU", "SELU")
METHODS = (*(name for name in _FUNCTIONS if name.isupper()), *PARAMETRIC)
OPERATORS = tuple(name for name in _FUNCTIONS if name.islower())


@dataclass(frozen=True, eq=False)
class CurveParams:
    """A table and the type of its entries."""

    table: Table
    dtype: np.dtype[np.generic]
    written: Written

    def apply(self, x: Array) -> Array:
        """Return codes of codes."""
        return self.table.lookup(x).astype(self.dtype)


def lower(node: Node, operands: Operands) -> CurveParams:
    """Compute the table."""
    x, output = operands.input(0), operands.output()
    function = function_of(node)
    table = table_of(node, x, output, lambda v: function(v.astype(np.float64)).astype(np.float32))
    changed = dict.fromkeys(("alpha", "gamma")) if node.operator == "activation" else {}
    return CurveParams(
        table, output.dtype.storage, Written({"lut": table.entries.astype(output.dtype.storage)}, changed=changed)
    )


def run(params: CurveParams, x: Array) -> tuple[Array, ...]:
    """Run the table: codes [S, ...] -> codes [S, ...]."""
    return (params.apply(x),)


def function_of(node: Node) -> Function:
    """Return the function of a layer on real numbers, in float64."""
    method = node.attributes.text("method", "")
    if method == "GELU":
        is_tanh = node.attributes.text("approximate", "NONE") == "TANH"
        return lambda x: _gelu(x, is_tanh)
    if method in PARAMETRIC:
        alpha = node.attributes.real("alpha", 1.0)
        gamma = node.attributes.real("gamma", 1.0) if method == "SELU" else 1.0
        return lambda x: gamma * _elu(x, alpha)
    return _FUNCTIONS[method if method in METHODS else node.operator]
