"""A reshape that restores the shape in front of another one goes, as Keras' Conv1D writes them around each layer."""

from __future__ import annotations

from tflq.converters.passes.rewrite import redirect
from tflq.graph import Graph, pruned

_RESHAPES = ("reshape", "squeeze", "expand_dims")


def remove_undone_reshapes(graph: Graph) -> Graph:
    """Return the graph without pairs of reshapes whose first reads the shape that the second writes."""
    result = graph.copy()
    reshapes = {node.outputs[0]: i for i, node in enumerate(graph.nodes) if node.operator in _RESHAPES}
    for written, index in reshapes.items():
        first = reshapes.get(result.nodes[index].inputs[0])
        if first is None or written in graph.outputs:
            continue
        origin = result.nodes[first].inputs[0]
        if graph.tensors[origin].shape == graph.tensors[written].shape:
            redirect(result, written, origin)
    return pruned(result)
