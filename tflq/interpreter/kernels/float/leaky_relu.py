"""LEAKY_RELU of float32: x where x > 0, else f32(x * alpha). Equal to TFLite bit for bit.

Source: TFLite kernels/internal/reference/leaky_relu.h.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.float.unary import lower_unary


@dataclass(frozen=True)
class LeakyRelu:
    """What LEAKY_RELU needs: alpha, as float32."""

    alpha: np.float32


def lower(node: Node, operands: Operands) -> LeakyRelu:
    """Read alpha; errors as `lower_unary`."""
    lower_unary(node, operands)
    return LeakyRelu(np.float32(node.attributes.real("alpha", 0.0)))


def run(params: LeakyRelu, x: Array) -> tuple[Array, ...]:
    """Run LEAKY_RELU: float32[S, *shape] -> float32[S, *shape]."""
    with np.errstate(over="ignore", invalid="ignore"):
        return (np.where(np.greater(x, 0), x, np.asarray(x * params.alpha)),)
