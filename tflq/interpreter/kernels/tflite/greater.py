"""GREATER: x > y, elementwise with broadcasting (comparison.py). Source: TFLite kernels/comparisons.cc."""

from __future__ import annotations

from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.plain.comparison import PlainComparison
from tflq.interpreter.kernels.tflite.comparison import QuantisedComparison, lower_comparison, run_comparison


def lower(node: Node, operands: Operands) -> QuantisedComparison | PlainComparison:  # noqa: ARG001
    """Decide the integers; errors as `lower_comparison`."""
    return lower_comparison("greater", operands)


def run(params: QuantisedComparison | PlainComparison, first: Array, second: Array) -> tuple[Array, ...]:
    """Run GREATER: T[S or 1, *shape] twice, shapes broadcast -> bool[S, *shape]."""
    return run_comparison(params, first, second)
