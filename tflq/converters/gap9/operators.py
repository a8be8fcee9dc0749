"""Which operators belong together on GAP9, the file's operator that a node comes from, and what it says of NNTool."""

from __future__ import annotations

from itertools import takewhile

from tflq.converters.passes.rewrite import with_attributes
from tflq.graph import Node
from tflq.graph.operators import LINEAR_OPERATORS, Trait, with_traits
from tflq.graph.rewriting import GraphEditor

FILTERS = LINEAR_OPERATORS
POOLS = ("max_pool_2d", "average_pool_2d")
RECTIFIERS = ("relu", "relu6")
CURVES = ("leaky_relu", "hard_swish", "hard_sigmoid", "logistic", "tanh")
"""Activations in front of which a filter writes 32 bits."""
ACTIVATIONS = (*RECTIFIERS, *CURVES)
LSTM, EXPRESSION = "unidirectional_sequence_lstm", "expression"
GLOBAL_POOLS = ("mean", "sum", "reduce_max")
ARITHMETIC = ("add", "sub", "mul")
"""Pairs with integer kernels of their own."""
RESIZES = with_traits(Trait.RESIZE)
FLATTENING = ("reshape", "squeeze")
_PARTS = (Trait.RESHAPE, Trait.JOIN, Trait.SPLIT, Trait.CROP, Trait.RESIZE)
_OTHERS = ("batch_to_space_nd", "gather", "pad", "reverse_v2", "space_to_batch_nd", "tile", "transpose")
MOVES = frozenset(_OTHERS).union(*map(with_traits, _PARTS))
"""Operators that move codes: inputs and outputs have one type."""
_THIN = ("quantize", *FLATTENING, *ACTIVATIONS)
"""Element-wise in one operand, or not even that."""


def layer_of(node: Node) -> str:
    """Return the name of the file's operator that a node comes from: its own, or what made it."""
    return node.attributes.text("layer", node.name)


def departing(node: Node, text: str) -> Node:
    """Return the node that says, beside what it says already, where NNTool departs from it (attribute `departure`)."""
    said = node.attributes.text("departure", "")
    return node if text in said else with_attributes(node, departure="; ".join(filter(None, (said, text))))


def taken_for_another(editor: GraphEditor, node: Node) -> str:
    """Say where NNTool takes x + x, or x * x, for an earlier sum, or product, of x and something else; else ""."""
    if node.operator not in ("add", "mul"):
        return ""
    sources = [behind_thin(editor, t)[-1] for t in node.inputs]
    for other in takewhile(lambda other: other.name != node.name, editor.nodes) if sources[0] == sources[1] else ():
        if other.operator == node.operator:
            read = {behind_thin(editor, t)[-1] for t in other.inputs}
            if sources[0] in read and len(read) > 1:
                return f"NNTool takes it for '{other.name}', which reads its operand, too, or fails (17.16)"
    return ""


def behind_thin(editor: GraphEditor, tensor: int) -> list[int]:
    """Return the tensor and those in front of it, up to what is not element-wise in one operand."""
    tensors = [tensor]
    while (writer := editor.writer(tensors[-1])) is not None and writer.operator in _THIN:
        tensors.append(writer.inputs[0])
    return tensors
