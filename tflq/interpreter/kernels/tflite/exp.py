"""EXP: e^x, quantised, as a table (quantised_function.py). int8, int16. Source: TFLite kernels/exp.cc."""

from __future__ import annotations

from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.tflite.quantised_function import QuantisedFunction, lower_function, run_function
from tflq.interpreter.numerics import transcendental


def lower(node: Node, operands: Operands) -> QuantisedFunction:  # noqa: ARG001
    """Make the table; errors as `lower_function`."""
    return lower_function(operands, (DType.INT8, DType.INT16), transcendental.exp)


def run(params: QuantisedFunction, x: Array) -> tuple[Array, ...]:
    """Run EXP: T[S, *shape] -> T[S, *shape]."""
    return run_function(params, x)
