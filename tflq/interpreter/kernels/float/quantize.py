"""QUANTIZE where nothing is quantised: in a model's float view both sides are float32, and the values stay."""

from __future__ import annotations

from tflq.graph import Array
from tflq.interpreter.kernels.float.unary import Unary
from tflq.interpreter.kernels.float.unary import lower_unary as lower

__all__ = ["lower", "run"]


def run(params: Unary, x: Array) -> tuple[Array, ...]:  # noqa: ARG001
    """Return the input: float32[S, *shape]."""
    return (x,)
