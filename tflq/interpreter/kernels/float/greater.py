"""GREATER: x > y, elementwise with broadcasting. Equal to TFLite. Source: TFLite kernels/comparisons.cc."""

from __future__ import annotations

from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.plain.comparison import PlainComparison, lower_plain_comparison, run_plain_comparison


def lower(node: Node, operands: Operands) -> PlainComparison:  # noqa: ARG001
    """Check the operands; errors as `lower_plain_comparison`."""
    return lower_plain_comparison("greater", operands)


def run(params: PlainComparison, first: Array, second: Array) -> tuple[Array, ...]:
    """Run GREATER: T[S or 1, *shape] twice, shapes broadcast -> bool[S, *shape]."""
    return run_plain_comparison(params, first, second)
