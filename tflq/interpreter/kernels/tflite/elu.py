"""ELU: x where x >= 0, else e^x - 1, quantised, as a table (quantised_function.py). int8.

TFLite has no reference kernel for it; this is its optimised one. Source: TFLite kernels/activations.cc (EluPrepare).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.tflite.quantised_function import QuantisedFunction, lower_function, run_function
from tflq.interpreter.numerics import transcendental


def lower(node: Node, operands: Operands) -> QuantisedFunction:  # noqa: ARG001
    """Make the table; errors as `lower_function`."""
    return lower_function(operands, (DType.INT8,), _elu)


def run(params: QuantisedFunction, x: Array) -> tuple[Array, ...]:
    """Run ELU: int8[S, *shape] -> int8[S, *shape]."""
    return run_function(params, x)


def _elu(x: NDArray[np.floating]) -> NDArray[np.floating]:
    return np.where(x < 0, transcendental.expm1(x), x)
