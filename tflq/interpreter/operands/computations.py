"""Operators that apply a small graph to pairs of numbers: TFLite recognizes its only operator instead of running it.

Source: TFLite kernels/stablehlo_scatter.cc (GetComputationType), stablehlo_reduce_window.cc (GetBodyFunction).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Graph, Node

COMPUTATION = "computation"
"""Attribute that holds the name of the operator; UPDATE where the graph has none."""
UPDATE = "update"
_BODIES = {
    "stablehlo_scatter": "update_computation_subgraph_index",
    "stablehlo_reduce_window": "body_subgraph_index",
}


def name_computations(graphs: Sequence[Graph]) -> tuple[Graph, ...]:
    """Return the graphs with the name of the computation in each node that has one; other graphs are unchanged.

    Raises:
        GraphError: a node names a graph that does not exist.
        UnsupportedError: a computation of more than one operator.
    """
    return tuple(_named(graph, graphs) for graph in graphs)


def _named(graph: Graph, graphs: Sequence[Graph]) -> Graph:
    if not any(node.operator in _BODIES for node in graph.nodes):
        return graph
    nodes = [_with_computation(graph.where(i), node, graphs) for i, node in enumerate(graph.nodes)]
    return replace(graph, nodes=nodes)


def _with_computation(where: str, node: Node, graphs: Sequence[Graph]) -> Node:
    if node.operator not in _BODIES:
        return node
    number = node.attributes.integer(_BODIES[node.operator], 0)
    if not 0 <= number < len(graphs):
        raise GraphError(f"{where} computes by subgraph {number}; the model has 0..{len(graphs) - 1}")
    operators = [inner.operator for inner in graphs[number].nodes]
    if len(operators) > 1:
        raise UnsupportedError(f"{where} computes by {', '.join(operators)}; TFLite takes a single operator")
    return replace(node, attributes=node.attributes.updated(computation=operators[0] if operators else UPDATE))
