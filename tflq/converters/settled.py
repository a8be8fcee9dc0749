"""What every target sees: true shapes, and no operators whose results are known before the run.

Keras writes SHAPE, STRIDED_SLICE and PACK in front of RESHAPE and TRANSPOSE_CONV, in quantised networks too. With the
shapes of the inputs they are constants, so no target needs a mapping for them. Tensors keep their numbers, nodes their
names.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.errors import TflqError
from tflq.graph import Graph, Model
from tflq.interpreter.execution.settle import settle


def settled_graph(graph: Graph) -> Graph:
    """Return the graph for the shapes of its inputs; the graph itself where that changes nothing.

    A graph that contradicts itself stays as it is: who quantises it says what is wrong.
    """
    try:
        found = settle(graph).graph
    except TflqError:
        return graph
    pairs = list(zip(graph.tensors, found.tensors, strict=True))
    known = {t for t, (stated, true) in enumerate(pairs) if true.is_constant and not stated.is_constant}
    if not known and all(stated.shape == true.shape for stated, true in pairs):
        return graph
    nodes = [node for node in graph.nodes if not node.outputs or not known.issuperset(node.outputs)]
    return replace(graph, tensors=found.tensors, nodes=nodes)


def settled_model(model: Model) -> Model:
    """Return the model whose main graph is settled; the model itself where that changes nothing."""
    graph = settled_graph(model.main)
    return model if graph is model.main else replace(model, graphs=[graph, *model.graphs[1:]])
