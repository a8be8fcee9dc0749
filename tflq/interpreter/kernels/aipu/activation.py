"""Activation: each method has its module; all give integers with `apply` and `written`."""

from __future__ import annotations

from collections.abc import Callable

from tflq.errors import UnsupportedError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.aipu import clip, curve, prelu, rectifier, signed_rescale

ActivationParams = (
    rectifier.RectifierParams | curve.CurveParams | clip.ClipParams | signed_rescale.SignedParams | prelu.PreluParams
)
_Lower = Callable[[Node, Operands], ActivationParams]
_OTHERS: dict[str, _Lower] = {
    "RELU": rectifier.lower,
    "RELU6": rectifier.lower,
    "CLIP": clip.lower,
    "LEAKYRELU": signed_rescale.lower,
    "PRELU": prelu.lower,
}
METHODS = (*_OTHERS, *curve.METHODS)


def lower(node: Node, operands: Operands) -> ActivationParams:
    """Decide the integers of Activation.

    Raises:
        UnsupportedError: another method.
    """
    method = node.attributes.text("method")
    if method in curve.METHODS:
        return curve.lower(node, operands)
    if method not in _OTHERS:
        raise UnsupportedError(f"method={method}; allowed is {', '.join(METHODS)}")
    return _OTHERS[method](node, operands)


def run(params: ActivationParams, x: Array, *_constants: Array) -> tuple[Array, ...]:
    """Run Activation: codes [S, ...] -> codes [S, ...]."""
    return (params.apply(x),)
