"""ARG_MIN: the index of the smallest element along an axis (arg_extreme.py). Source: TFLite kernels/arg_min_max.cc."""

from __future__ import annotations

from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.plain.arg_extreme import ArgExtreme, lower_arg_extreme, run_arg_extreme


def lower(node: Node, operands: Operands) -> ArgExtreme:
    """Read the axis; errors as `lower_arg_extreme`."""
    return lower_arg_extreme(node, operands)


def run(params: ArgExtreme, x: Array, *_axis: Array) -> tuple[Array, ...]:
    """Run ARG_MIN: T[S, *shape] -> int32 or int64 [S, *shape without the axis]."""
    return run_arg_extreme(params, x, largest=False)
