"""Which operators compute on NNIE's logarithmic codes, and which of their inputs become codes."""

from __future__ import annotations

from tflq.converters.passes.patterns import computed_inputs
from tflq.graph import Graph, Node

WEIGHTED = ("conv_2d", "depthwise_conv_2d", "fully_connected")
QUANTISING = (*WEIGHTED, "average_pool_2d", "mean", "add", "mul", "concatenation")
"""Operators whose inputs become codes, all with one z."""


def layer_inputs(graph: Graph, node: Node) -> tuple[int, ...]:
    """Return the computed inputs of a quantising layer, without weights, bias and axes."""
    if node.operator in (*WEIGHTED, "average_pool_2d", "mean"):
        return node.inputs[:1]
    return tuple(t for _, t in computed_inputs(graph, node))
