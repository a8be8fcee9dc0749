"""GELU: x Phi(x), or its approximation by tanh, quantised, as a table (quantised_function.py). int8, uint8, int16.

Source: TFLite kernels/activations.cc (GeluPrepare), internal/reference/gelu.h.
"""

from __future__ import annotations

from functools import partial

from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.tflite.quantised_function import QuantisedFunction, lower_function, run_function
from tflq.interpreter.numerics import transcendental
from tflq.interpreter.operands.checks import EIGHT_BITS


def lower(node: Node, operands: Operands) -> QuantisedFunction:
    """Make the table; errors as `lower_function`."""
    function = partial(transcendental.gelu, approximate=node.attributes.boolean("approximate", False))
    return lower_function(operands, (*EIGHT_BITS, DType.INT16), function, symmetric=False)


def run(params: QuantisedFunction, x: Array) -> tuple[Array, ...]:
    """Run GELU: T[S, *shape] -> T[S, *shape]."""
    return run_function(params, x)
