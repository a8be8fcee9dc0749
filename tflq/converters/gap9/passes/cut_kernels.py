"""A kernel that reaches beyond a map one row high or one column wide is cut to the one tap that sees the map."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tflq.converters.gap9.operators import layer_of
from tflq.converters.gap9.options import LayerOptions
from tflq.converters.passes.rewrite import with_attributes
from tflq.graph import Attributes, Graph, Node
from tflq.graph.operators import CONVOLUTIONS
from tflq.interpreter.operands.windows import window_of_node

_DEPARTURE = "NNTool keeps the first tap of a kernel that reaches beyond the map; another one sees the map (17.1)"


def cut_kernels(graph: Graph, options: Mapping[str, LayerOptions]) -> Graph:
    """Return the graph with kernels of one row over maps of one row, and of one column over maps of one column.

    The other taps see padding only. What remains is row pad_top and column pad_left; NNTool keeps row 0 and column 0
    (numerics=nntool). Engines and scales of weights follow the cut kernel. Kernels with a dilation stay, and those that
    stand in the padding beside the map.
    """
    result = graph.copy()
    for index, node in enumerate(graph.nodes):
        if node.operator in CONVOLUTIONS and graph.tensors[node.inputs[1]].is_constant:
            _cut(result, index, options[layer_of(node)].numerics == "nntool")
    return result


def _cut(graph: Graph, index: int, first_tap: bool) -> None:
    node = graph.nodes[index]
    image, weights = graph.tensors[node.inputs[0]], graph.tensors[node.inputs[1]]
    window = window_of_node(node, image.shape, weights.shape)
    made, before = graph.tensors[node.outputs[0]].shape, (window.top, window.left)
    kernel = weights.shape[1:3]
    axes = [a for a in range(2) if before[a] < kernel[a] > image.shape[1 + a] == 1 == made[1 + a]]
    if window.dilation != (1, 1) or not axes or weights.data is None:
        return
    data, padding = weights.data, [window.top, window.bottom, window.left, window.right]
    for a in axes:
        data = np.take(data, [0 if first_tap else before[a]], axis=1 + a)
        padding[2 * a : 2 * a + 2] = 0, 0
    data.setflags(write=False)
    taps = graph.add_tensor(replace(weights, shape=data.shape, data=data))
    changed = _with_padding(node, tuple(padding))
    if any(before[a] for a in axes):
        changed = with_attributes(changed, departure=_DEPARTURE)
    graph.nodes[index] = replace(changed, inputs=(node.inputs[0], taps, *node.inputs[2:]))


def _with_padding(node: Node, padding: tuple[int, ...]) -> Node:
    if any(padding):
        return with_attributes(node, explicit_padding=padding)
    kept = {name: value for name, value in node.attributes.items() if name != "explicit_padding"}
    return replace(node, attributes=Attributes({**kept, "padding": "valid"}))
