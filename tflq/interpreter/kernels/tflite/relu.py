"""RELU: max(x, 0), rescaled to the output, in TFLite's integer arithmetic (clamped.py).

Types int8, uint8, int16. Source: TFLite kernels/activations.cc.
"""

from __future__ import annotations

from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.tflite.clamped import Clamped, lower_clamped, run_clamped


def lower(node: Node, operands: Operands) -> Clamped:  # noqa: ARG001
    """Decide the integers; errors as `lower_clamped`."""
    return lower_clamped(operands, ("relu", "relu"), (DType.INT8, DType.UINT8, DType.INT16))


def run(params: Clamped, x: Array) -> tuple[Array, ...]:
    """Run it: T[S, *shape] -> T[S, *shape]."""
    return run_clamped(params, x)
