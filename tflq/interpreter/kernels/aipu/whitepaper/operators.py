"""Table of arithmetic `aipu_whitepaper`, and the layers that it has."""

from __future__ import annotations

from tflq.graph import Node
from tflq.interpreter.kernels.aipu.whitepaper import NAME
from tflq.interpreter.kernels.aipu.whitepaper.formulas import KERNELS
from tflq.interpreter.registry import Arithmetic

_BY_METHOD = {
    "activation": ("CLIP", "LEAKYRELU", "SIGMOID", "SOFTSIGN", "TANH"),
    "eltwise": ("MAX", "MIN"),
    "logical": ("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL"),
    "reduce": ("MEAN",),
}

ARITHMETIC = Arithmetic(NAME, KERNELS, floating="float")


def covers(node: Node) -> bool:
    """Whether the whitepaper has a separate formula for a layer."""
    if node.operator in _BY_METHOD:
        return node.attributes.text("method", "") in _BY_METHOD[node.operator]
    return node.operator in KERNELS
