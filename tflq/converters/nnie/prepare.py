"""The graph that NNIE's rules look at: real numbers with ranges."""

from __future__ import annotations

from tflq.converters.calibration import ranges_from_quantisation
from tflq.graph import ABSENT, Graph, Node, float_view

WEIGHTED = ("conv_2d", "depthwise_conv_2d", "fully_connected")
QUANTISING = (*WEIGHTED, "average_pool_2d", "mean", "add", "mul", "concatenation")
"""Operators whose inputs become codes, all with one z."""


def prepared(graph: Graph) -> Graph:
    """Return the float view, with the ranges that a calibration or the file's quantisation states."""
    return float_view(ranges_from_quantisation(graph))


def layer_inputs(graph: Graph, node: Node) -> tuple[int, ...]:
    """Return the computed inputs of a quantising layer, without weights, bias and axes."""
    if node.operator in (*WEIGHTED, "average_pool_2d", "mean"):
        return node.inputs[:1]
    return tuple(t for t in node.inputs if t != ABSENT and not graph.tensors[t].is_constant)
