"""The second half of FakeQuantize: codes to reals, f32((q - Z) * S), the product in float64."""

from __future__ import annotations

from tflq.graph import Affine, Array, DType, Node, Operands
from tflq.interpreter.kernels.openvino.levels import CODES, real_values
from tflq.interpreter.operands.checks import require_type


def lower(node: Node, operands: Operands) -> Affine:  # noqa: ARG001
    """Return the scale and zero point.

    Raises:
        UnsupportedError: other types.
        GraphError: codes without a scale.
    """
    require_type(operands.input(0), CODES)
    require_type(operands.output(), (DType.FLOAT32,))
    return operands.input(0).affine


def run(params: Affine, x: Array) -> tuple[Array, ...]:
    """Run it: codes [S, ..., C] -> float32[S, ..., C]."""
    return (real_values(x, params).astype("float32"),)
