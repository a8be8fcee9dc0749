"""Activations go into the layer in front of them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from tflq.converters.passes.patterns import Readers, fused_activation, only_reader
from tflq.converters.passes.rewrite import with_attributes, without_nodes
from tflq.graph import Graph


def fusable_activation(
    graph: Graph, index: int, into: Collection[str], activations: Collection[str], readers: Readers | None = None
) -> int | None:
    """Return the activation that alone reads what node `index` writes and can go into it; None where there is none.

    Args:
        graph: with the node.
        index: of the node.
        into: operators that take an activation and have none yet.
        activations: operators that can go into them.
        readers: `graph.consumers()`, where it is at hand.
    """
    node = graph.nodes[index]
    if node.operator not in into or fused_activation(node) != "none":
        return None
    reader = only_reader(graph, node.outputs[0], readers)
    return reader if reader is not None and graph.nodes[reader].operator in activations else None


def fuse_activations(graph: Graph, into: Collection[str], activations: Collection[str]) -> Graph:
    """Return the graph with each activation of `fusable_activation` in the layer in front of it.

    The layer then writes the activation's tensor; its own tensor is written by nobody.
    """
    result, readers, gone = graph.copy(), graph.consumers(), set[int]()
    for index, node in enumerate(graph.nodes):
        reader = fusable_activation(graph, index, into, activations, readers)
        if reader is not None:
            activation = graph.nodes[reader]
            fused = with_attributes(node, fused_activation_function=activation.operator)
            result.nodes[index] = replace(fused, outputs=activation.outputs)
            gone.add(reader)
    return without_nodes(result, gone)
