"""REDUCE_MIN: the smallest element over some axes (reduction.py). Source: TFLite kernels/reduce.cc."""

from __future__ import annotations

from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.plain.reduction import EXTREMES, PlainReduction, lower_plain_reduction, run_extreme


def lower(node: Node, operands: Operands) -> PlainReduction:
    """Decide the axes; errors as `lower_plain_reduction`."""
    return lower_plain_reduction(node, operands, EXTREMES)


def run(params: PlainReduction, x: Array, *_axes: Array) -> tuple[Array, ...]:
    """Run REDUCE_MIN: T[S, *shape] -> T[S, *shape without the axes, or with 1 there]."""
    return run_extreme(params, x, largest=False)
