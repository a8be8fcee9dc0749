"""The RELU family, LEAKY_RELU and HARD_SWISH of float32: float32[S, *shape] -> float32[S, *shape].

LEAKY_RELU: x where x > 0, else f32(x * alpha). Equal to TFLite bit for bit. Source: TFLite
kernels/internal/reference/leaky_relu.h.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.plain.binary import clamp_in_place
from tflq.interpreter.operands.checks import require_same_type, require_type
from tflq.interpreter.registry import Kernel


@dataclass(frozen=True)
class Unary:
    """An operator without numbers of its own."""


@dataclass(frozen=True)
class LeakyRelu:
    """What LEAKY_RELU needs: alpha, as float32."""

    alpha: np.float32


def lower_float32(node: Node, operands: Operands) -> Unary:  # noqa: ARG001
    """Check the types.

    Raises:
        UnsupportedError: input or output is not float32.
    """
    require_type(operands.input(0), (DType.FLOAT32,))
    require_same_type(operands.input(0), operands.output())
    return Unary()


def _lower_leaky(node: Node, operands: Operands) -> LeakyRelu:
    lower_float32(node, operands)
    return LeakyRelu(np.float32(node.attributes.real("alpha", 0.0)))


def _run_leaky(params: LeakyRelu, x: Array) -> tuple[Array, ...]:
    with np.errstate(over="ignore", invalid="ignore"):
        return (np.where(np.greater(x, 0), x, np.asarray(x * params.alpha)),)


def _hard_swish(x: Array) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):
        shifted = x + np.float32(3)
        bounded = np.where(np.greater(shifted, 0), np.where(np.less(shifted, 6), shifted, np.float32(6)), np.float32(0))
        return np.asarray(x * bounded / np.float32(6))


def _row(summary: str, source: str, function: Callable[[Array], Array]) -> Kernel:
    def run(params: Unary, x: Array) -> tuple[Array, ...]:  # noqa: ARG001
        return (function(x),)

    return Kernel(lower_float32, run, f"{summary}. Equal to TFLite bit for bit", source)


def _clamp(summary: str, low: int, high: int, name: str) -> Kernel:
    bounds = np.float32(low), np.float32(high)
    source = f"TFLite kernels/internal/reference/reference_ops.h ({name})"
    return _row(summary, source, lambda x: clamp_in_place(x.copy(), *bounds))


KERNELS = {
    "relu": _row(
        "0 where x < 0, else x; -0.0 and NaN stay",
        "TFLite kernels/activations.cc (ReluEval)",
        lambda x: np.where(np.less(x, 0), np.float32(0), x),
    ),
    "relu6": _clamp("min(max(x, 0), 6); -0.0 and NaN stay", 0, 6, "Relu6"),
    "relu_0_to_1": _clamp("min(max(x, 0), 1); -0.0 and NaN stay", 0, 1, "Relu0To1"),
    "relu_n1_to_1": _clamp("min(max(x, -1), 1); NaN stays", -1, 1, "Relu1"),
    "hard_swish": _row(
        "f32(f32(x * min(6, max(0, f32(x + 3)))) / 6)", "TFLite kernels/internal/reference/hard_swish.h", _hard_swish
    ),
    "leaky_relu": Kernel(_lower_leaky, _run_leaky),
}
