"""True shapes, and results that are known before the run, as constants."""

from __future__ import annotations

from dataclasses import replace

from tflq.graph import Graph
from tflq.graph.rewriting import GraphEditor
from tflq.interpreter.execution.settle import settle


def settle_shapes(graph: Graph) -> Graph:
    """Return the graph with the shapes of its inputs, without open sizes; nodes with known results are removed.

    A node that writes an output of the graph stays: the runtime returns no constants.
    """
    settled = settle(graph).graph
    kept = [
        node
        for node, result in zip(graph.nodes, settled.nodes, strict=True)
        if not node.outputs
        or not all(settled.tensors[t].is_constant for t in result.outputs)
        or not set(node.outputs).isdisjoint(graph.outputs)
    ]
    written = {t for node in kept for t in node.outputs}
    tensors = [
        replace(tensor, data=None if t in written else tensor.data, shape_signature=None)
        for t, tensor in enumerate(settled.tensors)
    ]
    return replace(graph, tensors=tensors, nodes=kept)


def remove_idle_quantize(editor: GraphEditor) -> None:
    """Remove QUANTIZE between tensors of one type and quantization."""
    for node in editor.nodes_of("quantize"):
        source, result = (editor.tensors[t] for t in (node.inputs[0], node.outputs[0]))
        is_idle = source.dtype is result.dtype and source.quantization == result.quantization
        if is_idle and not editor.is_output(node.outputs[0]):
            editor.bypass(node)
