"""REDUCE_ALL: logical and over some axes (reduction.py). Source: TFLite kernels/reduce.cc."""

from __future__ import annotations

from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.plain.reduction import PlainReduction, lower_plain_reduction, run_extreme


def lower(node: Node, operands: Operands) -> PlainReduction:
    """Decide the axes; errors as `lower_plain_reduction`."""
    return lower_plain_reduction(node, operands, (DType.BOOL,))


def run(params: PlainReduction, x: Array, *_axes: Array) -> tuple[Array, ...]:
    """Run REDUCE_ALL: bool[S, *shape] -> bool[S, *shape without the axes, or with 1 there]."""
    return run_extreme(params, x, largest=False)
