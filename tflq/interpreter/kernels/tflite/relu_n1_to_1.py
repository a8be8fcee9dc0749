"""RELU_N1_TO_1: min(max(x, -1), 1), rescaled to the output, in TFLite's integer arithmetic (clamped.py).

Types int8, uint8. Source: TFLite kernels/activations.cc.
"""

from __future__ import annotations

from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.tflite.clamped import Clamped, lower_clamped, run_clamped


def lower(node: Node, operands: Operands) -> Clamped:  # noqa: ARG001
    """Decide the integers; errors as `lower_clamped`."""
    return lower_clamped(operands, ("relu_n1_to_1", "relu_n1_to_1"), (DType.INT8, DType.UINT8))


def run(params: Clamped, x: Array) -> tuple[Array, ...]:
    """Run it: T[S, *shape] -> T[S, *shape]."""
    return run_clamped(params, x)
