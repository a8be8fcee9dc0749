"""Passes from a float network with ranges to levels between linear operators.

Here: which operators compute on quantized values, which move them, and where their data stands.
"""

from __future__ import annotations

from tflq.graph import ABSENT, Graph, Node
from tflq.graph.operators import LINEAR_OPERATORS, RESHAPES, Trait, with_traits
from tflq.graph.rewriting import GraphEditor, fused_activation

ARITHMETIC = "openvino"
FILTERS = LINEAR_OPERATORS
"""Operators with weights."""
PAIRS = with_traits(Trait.ARITHMETIC) - {"div"}
LINEAR = (*FILTERS, *PAIRS, "average_pool_2d", "mean", "concatenation")
"""Operators that a Dequantize goes through and a Quantize goes into."""
RECTIFIERS = with_traits(Trait.RECTIFIER) - {"relu_0_to_1"}
MOVING = ("max_pool_2d", "pad", *RESHAPES, "transpose")
"""Operators after which levels are the same levels."""
PER_CHANNEL = ("depthwise_conv_2d", *PAIRS)
"""Operators whose activations may be quantized per channel."""


def data_inputs(graph: Graph | GraphEditor, node: Node) -> tuple[int, ...]:
    """Return the inputs whose levels count: without weights, bias, axes, shapes and constants."""
    if node.operator in (*PAIRS, "concatenation"):
        return tuple(t for t in node.inputs if t != ABSENT and not graph.tensors[t].is_constant)
    return node.inputs[:1]


def moves_levels(node: Node) -> bool:
    """Whether a node passes levels on as they are."""
    return node.operator in MOVING and fused_activation(node) == "none"
