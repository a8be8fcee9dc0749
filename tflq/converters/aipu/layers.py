"""Compass's layers: the names of their types, and which type of integers their outputs get (docs/aipu.md, 1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from tflq.graph import Node, Operands
from tflq.interpreter.kernels.aipu.scales import is_signed


class Signs(Enum):
    """Where the type of an output comes from."""

    PASS = "the input's own type"
    OWN = "the output's range"
    FIXED = "codes as they are: scale 1, zero point 0"


Signed = Callable[[Node, Operands], bool]
"""Whether the codes of an output are signed; the inputs of the operands have their types."""


@dataclass(frozen=True)
class LayerRule:
    """What the quantiser knows of a layer.

    Attributes:
        type: as in the IR.
        signs: where the output's type comes from.
        signed: for Signs.OWN.
        is_linear: whether it has weights and biases on the scale of its input.
    """

    type: str
    signs: Signs
    signed: Signed = lambda _node, _operands: True
    is_linear: bool = False


UNSIGNED_ACTIVATIONS = ("RELU", "RELU6")


def _never(_node: Node, _operands: Operands) -> bool:
    return False


def _unless_rectified(node: Node, _operands: Operands) -> bool:
    return node.attributes.text("with_activation", "NONE") not in UNSIGNED_ACTIVATIONS


def _activation(node: Node, _operands: Operands) -> bool:
    return node.attributes.text("method") not in UNSIGNED_ACTIVATIONS


def follows_input(_node: Node, operands: Operands) -> bool:
    """Signed where any input that is no constant is."""
    return any(is_signed(t) for t in operands.inputs if t is not None and not t.is_constant)


RULES = {
    "activation": LayerRule("Activation", Signs.OWN, _activation),
    "convolution": LayerRule("Convolution", Signs.OWN, _unless_rectified, True),
    "depthwise_conv": LayerRule("DepthwiseConv", Signs.OWN, _unless_rectified, True),
    "fully_connected": LayerRule("FullyConnected", Signs.OWN, _unless_rectified, True),
    "pooling": LayerRule("Pooling", Signs.PASS),
    "reshape": LayerRule("Reshape", Signs.PASS),
    "softmax": LayerRule("Softmax", Signs.OWN, _never),
}
OPERATORS = {rule.type: operator for operator, rule in RULES.items()}
ARITHMETIC = "aipu"
