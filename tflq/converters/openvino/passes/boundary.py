"""The network's ends: codes go in and come out where that is asked for."""

from __future__ import annotations

from dataclasses import replace

from tflq.converters.passes.rewrite import without_nodes
from tflq.graph import Graph

ARITHMETIC = "openvino"


def codes_at_inputs(graph: Graph) -> Graph:
    """Return the graph whose inputs are the codes that a Quantize made of them; other inputs stay."""
    found: dict[int, int] = {}
    readers = graph.consumers()
    gone = set()
    for t in graph.inputs:
        first = [i for i in readers.get(t, []) if graph.nodes[i].operator == "quantize"]
        if len(first) == 1 and len(readers[t]) == 1:
            found[t] = graph.nodes[first[0]].outputs[0]
            gone.add(first[0])
    return replace(without_nodes(graph, gone), inputs=tuple(found.get(t, t) for t in graph.inputs))


def codes_at_outputs(graph: Graph) -> Graph:
    """Return the graph whose outputs are codes where a Dequantize alone made reals of them."""
    writers = graph.producers()
    outputs = []
    for t in graph.outputs:
        node = graph.nodes[writers[t]] if t in writers else None
        is_made = node is not None and node.operator == "dequantize" and node.arithmetic == ARITHMETIC
        outputs.append(node.inputs[0] if node is not None and is_made else t)
    return replace(graph, outputs=tuple(outputs))
