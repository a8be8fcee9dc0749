"""Arithmetic `aipu_whitepaper`: the formulas of whitepaper ACN-AWP-1002A where the Optimizer has others.

docs/aipu.md, 10, lists them side by side. All else runs in arithmetic `aipu`; `covers` says which nodes are here.
"""

from __future__ import annotations

from tflq.graph import Node
from tflq.interpreter.registry import Arithmetic, places

NAME = "aipu_whitepaper"
_WHOLE = ("bias_add", "cast", "count", "div", "moments", "negative", "softmax")
_BY_METHOD = {
    "activation": ("CLIP", "LEAKYRELU", "SIGMOID", "SOFTSIGN", "TANH"),
    "eltwise": ("MAX", "MIN"),
    "logical": ("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL"),
    "reduce": ("MEAN",),
}

ARITHMETIC = Arithmetic(
    NAME,
    places(
        "tflq.interpreter.kernels.aipu.whitepaper",
        formulas=" ".join((*_WHOLE, *_BY_METHOD, "cosine", "sine", "square")),
    ),
    "float",
)


def covers(node: Node) -> bool:
    """Whether the whitepaper has a formula of its own for a layer."""
    if node.operator in _BY_METHOD:
        return node.attributes.text("method", "") in _BY_METHOD[node.operator]
    return node.operator in ARITHMETIC.kernels
