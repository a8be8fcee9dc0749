"""LOG: ln(x), quantised, as a table (quantised_function.py). int8, int16.

Where x <= 0 it is the smallest real value of the output, f32(s_o (lowest code - z_o)).
Source: TFLite kernels/elementwise.cc (LogLUTPrepare).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.tflite.quantised_function import QuantisedFunction, lower_function, run_function
from tflq.interpreter.numerics import transcendental
from tflq.interpreter.operands.checks import per_tensor


def lower(node: Node, operands: Operands) -> QuantisedFunction:  # noqa: ARG001
    """Make the table; errors as `lower_function`."""
    scale, zero_point = per_tensor(operands.output())
    smallest = np.float32(operands.output().dtype.minimum - zero_point) * scale

    def logarithm(x: NDArray[np.floating]) -> NDArray[np.floating]:
        return np.where(x <= 0, smallest, transcendental.log(x))

    return lower_function(operands, (DType.INT8, DType.INT16), logarithm)


def run(params: QuantisedFunction, x: Array) -> tuple[Array, ...]:
    """Run LOG: T[S, *shape] -> T[S, *shape]."""
    return run_function(params, x)
