"""An Add of one number a channel behind a filter is its bias."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.converters.openvino.passes.operators import FILTERS
from tflq.graph import Graph, Node, Tensor


def fold_biases(graph: Graph) -> Graph:
    """Return the graph whose filters have their biases."""
    result, readers, writers, gone = graph.copy(), graph.consumers(), graph.producers(), set[int]()
    for index, node in enumerate(graph.nodes):
        found = _bias(graph, node, readers, writers)
        if found is None:
            continue
        position, constant = found
        values = np.ascontiguousarray(constant.data, np.float32).reshape(-1)
        values.setflags(write=False)
        bias = result.add_tensor(replace(constant, shape=values.shape, data=values))
        linear = graph.nodes[position]
        result.nodes[position] = replace(linear, inputs=(*linear.inputs[:2], bias), outputs=node.outputs)
        gone.add(index)
    result.nodes = [node for index, node in enumerate(result.nodes) if index not in gone]
    return result


def _bias(
    graph: Graph, node: Node, readers: dict[int, list[int]], writers: dict[int, int]
) -> tuple[int, Tensor] | None:
    """Return the filter and the constant that an Add adds to it alone."""
    if node.operator != "add":
        return None
    for t, other in (node.inputs, node.inputs[::-1]):
        constant, position = graph.tensors[other], writers.get(t)
        if position is None or constant.data is None or len(readers[t]) != 1 or t in graph.outputs:
            continue
        linear, channels = graph.nodes[position], graph.tensors[t].shape[-1]
        is_one_each = constant.data.size == channels and (not constant.shape or constant.shape[-1] == channels)
        if linear.operator in FILTERS and len(linear.inputs) == 2 and is_one_each:
            return position, constant
    return None
