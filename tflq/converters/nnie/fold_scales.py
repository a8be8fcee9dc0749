"""MUL, ADD and SUB by constants of channels go into the convolution in front of them.

Batch normalisation that a converter left behind is such. So NNIE's layer has one set of quantized weights, and how it
would quantise a Scale does not arise (docs/nnie.md, 5).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.converters.nnie.caffe.elementwise import affine_of
from tflq.converters.passes.patterns import bias_of, constant_operand, fused_activation, only_reader
from tflq.converters.passes.rewrite import constant, with_attributes, without_nodes
from tflq.graph import Graph, Node

_FILTERS = {"conv_2d": 0, "depthwise_conv_2d": 3, "fully_connected": 0}
"""Axis of the output channels of the weights."""


def fold_scales(graph: Graph) -> Graph:
    """Return the graph with w[o] * factor[o] and b[o] * factor[o] + addend[o] in its filters."""
    result, gone = graph.copy(), set[int]()
    for index in range(len(graph.nodes)):
        while (reader := _scaling_reader(result, index)) is not None and reader not in gone:
            node = _folded(result, result.nodes[index], result.nodes[reader])
            if node is None:
                break
            result.nodes[index] = node
            result.nodes[reader] = replace(result.nodes[reader], inputs=(), outputs=())
            gone.add(reader)
    return without_nodes(result, gone)


def _scaling_reader(graph: Graph, index: int) -> int | None:
    node = graph.nodes[index]
    if node.operator not in _FILTERS or fused_activation(node) != "none" or not node.outputs:
        return None
    reader = only_reader(graph, node.outputs[0])
    return reader if reader is not None and graph.nodes[reader].operator in ("mul", "add", "sub") else None


def _folded(graph: Graph, node: Node, scaling: Node) -> Node | None:
    """Return the filter with the constant in it; None where that is no constant of channels."""
    position, weights = constant_operand(graph, scaling), graph.tensors[node.inputs[1]]
    if position is None or weights.data is None:
        return None
    value = np.asarray(graph.tensors[scaling.inputs[position]].data, np.float32)
    channels = weights.shape[_FILTERS[node.operator]]
    if value.size not in (1, channels) or (value.size > 1 and value.shape[-1] != channels):
        return None
    given = bias_of(graph, node)
    if given is not None and given.data is None:
        return None
    factor, addend = affine_of(scaling.operator, np.broadcast_to(value.reshape(-1), channels), position == 0)
    shape = [channels if a == _FILTERS[node.operator] else 1 for a in range(weights.data.ndim)]
    bias = np.zeros(channels) if given is None or given.data is None else np.asarray(given.data, float).reshape(-1)
    scaled = np.asarray(weights.data, float) * factor.reshape(shape)
    inputs = (
        node.inputs[0],
        graph.add_tensor(constant(weights.name, scaled.astype(np.float32))),
        graph.add_tensor(constant(f"{weights.name}/bias", np.asarray(bias * factor + addend, np.float32))),
    )
    fused = with_attributes(node, fused_activation_function=fused_activation(scaling))
    return replace(fused, inputs=inputs, outputs=scaling.outputs)
