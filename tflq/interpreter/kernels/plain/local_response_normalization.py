"""LOCAL_RESPONSE_NORMALIZATION of float32 over the channels: x (bias + alpha sum of x^2)^-beta.

The sum is float32 and runs over the channels from c - radius up to, but not with, c + radius, in order; bias, alpha and
the power are float64, the power is rounded to float32. Equal to TFLite as far as the host's pow is correctly rounded.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.arrays import Singles
from tflq.errors import GraphError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.plain.elementwise import lower_unary
from tflq.interpreter.registry import Kernel


@dataclass(frozen=True)
class LocalResponseNormalization:
    """The options, as the file has them."""

    radius: int
    bias: float
    alpha: float
    beta: float


def lower(node: Node, operands: Operands) -> LocalResponseNormalization:
    """Read the options.

    Raises:
        UnsupportedError: another type.
        GraphError: an input without four axes.
    """
    lower_unary(operands, (DType.FLOAT32,))
    if len(operands.input(0).shape) != 4:
        raise GraphError(f"the input has shape {operands.input(0).shape}; the operator takes four axes")
    bias, alpha, beta = (node.attributes.real(name, 0.0) for name in ("bias", "alpha", "beta"))
    return LocalResponseNormalization(node.attributes.integer("radius", 0), bias, alpha, beta)


def run(params: LocalResponseNormalization, x: Singles) -> tuple[Array, ...]:
    """Run it: float32[S, N, H, W, C] -> float32[S, N, H, W, C]."""
    with np.errstate(all="ignore"):
        squares = x * x
        total = np.zeros_like(x)
        for c in range(x.shape[-1]):
            for other in range(max(0, c - params.radius), min(x.shape[-1], c + params.radius)):
                total[..., c] += squares[..., other]
        factor = np.power(params.bias + params.alpha * total.astype(np.float64), -params.beta)
        return (x * factor.astype(np.float32),)


KERNELS = {
    "local_response_normalization": Kernel(lower, run,
        "LOCAL_RESPONSE_NORMALIZATION of float32 over the channels: x (bias + alpha sum of x^2)^-beta",
        "TFLite kernels/local_response_norm.cc, internal/reference/reference_ops.h (LocalResponseNormalization)"),
}  # fmt: skip
