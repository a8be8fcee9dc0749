"""Layers of several inputs: Eltwise and its kind, Div, Pow, Logical, Where, Concat, ScatterND, ScatterElements."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tflq.arrays import Singles
from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.aipu.eltwise import COMBINE, COMPARE, METHODS
from tflq.interpreter.kernels.aipu.real.functions import fused_activation
from tflq.interpreter.kernels.aipu.real.rules import Compute, Rule, kernels
from tflq.interpreter.operands.checks import require_choice
from tflq.interpreter.operands.movable import equal_samples
from tflq.interpreter.samples import align

_PAIRS: dict[str, Callable[[Array, Array], Array]] = {
    "ADD": np.add,
    "SUB": np.subtract,
    "MUL": np.multiply,
    "MAX": np.maximum,
    "MIN": np.minimum,
}
EPSILON = np.finfo(np.float32).eps
"""What keeps a logarithm finite."""


def _eltwise(node: Node, operands: Operands) -> Compute:
    method = require_choice(node, "method", METHODS) if node.operator == "eltwise" else node.operator.upper()
    pair, then = _PAIRS[method], fused_activation(node, operands)
    return lambda a, b: then(pair(*align(a, b)))


def _pair(function: Callable[[Array, Array], Array]) -> Rule:
    return lambda _node, _operands: lambda a, b: function(*align(a, b))


def _pow(node: Node, _operands: Operands) -> Compute:
    if "exponent" in node.attributes:
        exponent = np.float64(node.attributes.real("exponent"))
        return lambda x: x.astype(np.float64) ** exponent
    return lambda x, p: np.power(*align(x.astype(np.float64), p))


def powers_of(_node: Node, _operands: Operands) -> Callable[[Array, Array], tuple[Array, ...]]:
    """Return ln(|x| + eps), p times it, and its exponential, each rounded to float32.

    Source: Compass Optimizer, ops/pow.py, placeholders.
    """

    def values(x: Array, p: Array) -> tuple[Array, ...]:
        base, exponent = align(np.asarray(x, np.float32), np.asarray(p, np.float32))
        logarithm: Singles = np.log((np.abs(base) + EPSILON).astype(np.float64)).astype(np.float32)
        product = np.multiply(logarithm, exponent).astype(np.float32)
        return logarithm, product, np.exp(product.astype(np.float64)).astype(np.float32)

    return values


def _logical(node: Node, _operands: Operands) -> Compute:
    method = require_choice(node, "method", (*COMPARE, *COMBINE, "NOT"))
    if method == "NOT":
        return lambda x: np.equal(x, 0)
    if method in COMBINE:
        return lambda a, b: COMBINE[method](*(x != 0 for x in align(a, b)))
    return lambda a, b: COMPARE[method](*align(a, b))


def _where(_node: Node, _operands: Operands) -> Compute:
    def compute(condition: Array, a: Array, b: Array) -> Array:
        chosen, left, right = align(condition, a, b)
        return np.where(chosen != 0, left, right)

    return compute


def _concat(node: Node, operands: Operands) -> Compute:
    axis = node.attributes.integer("axis") % len(operands.output().shape) + 1
    return lambda *branches: np.concatenate(equal_samples(*branches), axis=axis)


_COMBINED: dict[str, Callable[[Array, Array], Array]] = {**_PAIRS, "NONE": lambda _, update: update}
_REDUCTIONS = ("NONE", "ADD", "MUL", "MAX", "MIN")


def _scatter(node: Node, _operands: Operands) -> Compute:
    """Combine updates row by row of indices, or element by element along the axis, in their order."""
    combine = _COMBINED[require_choice(node, "reduction", _REDUCTIONS, "NONE")]
    axis = node.attributes.integer("axis") if node.operator == "scatter_elements" else None

    def compute(data: Array, indices: Array, updates: Array) -> Array:
        data, indices, updates = equal_samples(data, indices, updates)
        result: Array = data.copy()
        shape = indices.shape[1:] if axis is not None else indices.shape[1:-1]
        for s, place in ((s, place) for s in range(len(data)) for place in np.ndindex(shape)):
            target: list[int] = [int(i) for i in np.atleast_1d(indices[s][place])]
            if axis is not None:
                target = [*place[: axis % len(shape)], target[0], *place[axis % len(shape) + 1 :]]
            result[s][tuple(target)] = combine(result[s][tuple(target)], updates[s][place])
        return result

    return compute


KERNELS = kernels(
    {
        **dict.fromkeys(("add", "eltwise", "mul", "sub"), (_eltwise, "a op b, then the fused activation")),
        "concat": (_concat, "the inputs side by side"),
        "div": (_pair(np.divide), "a / b"),
        "logical": (_logical, "comparisons and combinations, 0 or 1"),
        "pow": (_pow, "x^p"),
        "scatter_elements": (_scatter, "updates combined into data along one axis"),
        "scatter_nd": (_scatter, "updates combined into data by rows of indices"),
        "squared_difference": (_pair(lambda a, b: np.square(np.subtract(a, b))), "(a - b)^2"),
        "where": (_where, "a where the condition is not 0, else b"),
    },
    {"pow": powers_of},
)
