"""Functions of one tensor: Activation, fused activations, tables' functions, Cast, Softmax."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tflq.arrays import Doubles
from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.aipu.activation import CLIP, FUSED, LEAKY, METHODS, NONE, PRELU, RELU, RELU6, SLOPE
from tflq.interpreter.kernels.aipu.curve import METHODS as CURVES
from tflq.interpreter.kernels.aipu.curve import OPERATORS, function_of
from tflq.interpreter.kernels.aipu.real.rules import Compute, Rule, kernels, own_constant
from tflq.interpreter.operands.checks import require_choice

_ZERO = np.float32(0)


def fused_activation(node: Node, operands: Operands) -> Callable[[Array], Array]:
    """Return the function of the key with_activation.

    Raises:
        UnsupportedError: another activation.
        GraphError: PRELU without slopes.
    """
    return _step(require_choice(node, "with_activation", FUSED, NONE), node, operands)


def _step(kind: str, node: Node, operands: Operands) -> Callable[[Array], Array]:
    if kind == RELU:
        return lambda x: np.maximum(x, _ZERO)
    if kind == RELU6:
        return lambda x: np.clip(x, _ZERO, np.float32(6))
    if kind == CLIP:
        low, high = (np.float32(node.attributes.real(key)) for key in ("clip_min", "clip_max"))
        return lambda x: np.clip(x, low, high)
    if kind in (LEAKY, PRELU):
        slope = (
            own_constant(operands, SLOPE) if kind == PRELU else np.float32(node.attributes.real("negative_slope_value"))
        )
        return lambda x: np.add(np.maximum(x, _ZERO), slope * np.minimum(x, _ZERO))
    return lambda x: x


def _activation(node: Node, operands: Operands) -> Compute:
    kind = require_choice(node, "method", METHODS)
    return _curve(node, operands) if kind in CURVES else _step(kind, node, operands)


def _curve(node: Node, _operands: Operands) -> Compute:
    function = function_of(node)
    return lambda x: function(x.astype(np.float64)).astype(np.float32)


def _crelu(node: Node, operands: Operands) -> Compute:
    axis = node.attributes.integer("axis", 0) % len(operands.input(0).shape) + 1
    return lambda x: np.concatenate([np.maximum(x, _ZERO), np.maximum(-x, _ZERO)], axis=axis)


def _cast(_node: Node, operands: Operands) -> Compute:
    """Cut floating-point values toward zero and clamp them to the type."""
    dtype = operands.output().dtype
    if dtype.is_floating:
        return lambda x: x.astype(dtype.storage)
    return lambda x: np.clip(np.trunc(x.astype(np.float64)), dtype.minimum, dtype.maximum)


def exponentials(x: Array, axis: int) -> tuple[Doubles, Doubles]:
    """Return x - max and e^(x - max) along an axis, float64."""
    below: Doubles = x.astype(np.float64) - x.max(axis=axis, keepdims=True)
    return below, np.exp(below)


def _softmax(node: Node, operands: Operands) -> Compute:
    axis = node.attributes.integer("axis") % len(operands.input(0).shape) + 1

    def compute(x: Array) -> Array:
        powers = exponentials(x, axis)[1]
        result: Doubles = powers / powers.sum(axis=axis, keepdims=True)
        return result

    return compute


def _log_softmax(node: Node, operands: Operands) -> Compute:
    axis = node.attributes.integer("axis") % len(operands.input(0).shape) + 1

    def compute(x: Array) -> Array:
        below, powers = exponentials(x, axis)
        result: Doubles = below - np.log(powers.sum(axis=axis, keepdims=True))
        return result

    return compute


def _wrap_function(function: Callable[[Array], Array]) -> Rule:
    return lambda _node, _operands: function


KERNELS = kernels(
    {
        **dict.fromkeys(OPERATORS, (_curve, "the function, in float64 and rounded once")),
        "abs": (_wrap_function(np.abs), "|x|"),
        "activation": (_activation, "the function of the method"),
        "cast": (_cast, "cut toward zero, limited to the type"),
        "crelu": (_crelu, "max(x, 0) beside max(-x, 0)"),
        "log_softmax": (_log_softmax, "x - max - ln(sum of e^(x - max))"),
        "negative": (_wrap_function(np.negative), "-x"),
        "sign": (_wrap_function(np.sign), "-1, 0 or 1"),
        "softmax": (_softmax, "e^(x - max) / sum of them"),
    }
)
