"""Rectifiers go into the layer in front of them: FakeQuantize follows the rectifier, not the sum."""

from __future__ import annotations

from dataclasses import replace

from tflq.converters.openvino.passes.operators import FILTERS, PAIRS
from tflq.graph import Graph

RECTIFIERS = ("relu", "relu6", "relu_n1_to_1")


def fuse_rectifiers(graph: Graph) -> Graph:
    """Return the graph with each rectifier that alone reads a filter or a sum fused into it."""
    result, readers, gone = graph.copy(), graph.consumers(), set[int]()
    for index, node in enumerate(graph.nodes):
        if node.operator not in (*FILTERS, *PAIRS):
            continue
        t = node.outputs[0]
        found = readers.get(t, [])
        if len(found) != 1 or t in graph.outputs or node.attributes.text("fused_activation_function", "none") != "none":
            continue
        reader = graph.nodes[found[0]]
        if reader.operator in RECTIFIERS:
            attributes = node.attributes.updated(fused_activation_function=reader.operator)
            result.nodes[index] = replace(node, outputs=reader.outputs, attributes=attributes)
            gone.add(found[0])
    result.nodes = [node for index, node in enumerate(result.nodes) if index not in gone]
    return result
