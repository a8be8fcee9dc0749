"""Which operators belong together on GAP9, the file's operator that a node comes from, and what it says of NNTool."""

from __future__ import annotations

from tflq.converters.passes.rewrite import with_attributes
from tflq.graph import Node

FILTERS = ("conv_2d", "depthwise_conv_2d", "fully_connected")
POOLS = ("max_pool_2d", "average_pool_2d")
RECTIFIERS = ("relu", "relu6")
CURVES = ("leaky_relu", "hard_swish", "hard_sigmoid", "logistic", "tanh")
"""Activations in front of which a filter writes 32 bits."""
ACTIVATIONS = (*RECTIFIERS, *CURVES)
GLOBAL_POOLS = ("mean", "sum", "reduce_max")
MOVES = (
    "batch_to_space_nd",
    "concatenation",
    "expand_dims",
    "gather",
    "pack",
    "pad",
    "reshape",
    "resize_bilinear",
    "resize_nearest_neighbor",
    "reverse_v2",
    "slice",
    "space_to_batch_nd",
    "split",
    "split_v",
    "squeeze",
    "strided_slice",
    "tile",
    "transpose",
    "unpack",
)
"""Operators that move codes: inputs and outputs have one type."""


def layer_of(node: Node) -> str:
    """Return the name of the file's operator that a node comes from: its own, or what made it."""
    return node.attributes.text("layer", node.name)


def departing(node: Node, text: str) -> Node:
    """Return the node that says, beside what it says already, where NNTool departs from it (attribute `departure`)."""
    said = node.attributes.text("departure", "")
    return node if text in said else with_attributes(node, departure="; ".join(filter(None, (said, text))))
