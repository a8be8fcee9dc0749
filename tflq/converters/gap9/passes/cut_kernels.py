"""A kernel that reaches beyond a map one row high or one column wide is cut to the one tap that sees the map."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.converters.gap9.editor import Gap9Editor
from tflq.converters.passes.rewrite import with_attributes
from tflq.graph import Attributes, Node
from tflq.graph.operators import CONVOLUTIONS
from tflq.interpreter.operands.windows import window_of_node

_DEPARTURE = "NNTool keeps the first tap of a kernel that reaches beyond the map; another one sees the map (17.1)"


def cut_kernels(editor: Gap9Editor) -> None:
    """Cut kernels over maps of one row to one row, and over maps of one column to one column.

    The other taps see padding only. What remains is row pad_top and column pad_left; NNTool keeps row 0 and column 0
    (numerics=nntool). Engines and scales of weights follow the cut kernel. Kernels with a dilation stay, and those that
    stand in the padding beside the map.
    """
    for node in editor.nodes:
        if node.operator in CONVOLUTIONS:
            _cut(editor, node)


def _cut(editor: Gap9Editor, node: Node) -> None:
    image, weights = (editor.tensors[t] for t in node.inputs[:2])
    window = window_of_node(node, image.shape, weights.shape)
    written, before = editor.shape(node.outputs[0]), (window.top, window.left)
    kernel = weights.shape[1:3]
    axes = [a for a in range(2) if before[a] < kernel[a] > image.shape[1 + a] == 1 == written[1 + a]]
    if window.dilation != (1, 1) or not axes or weights.data is None:
        return
    data, padding = weights.data, [window.top, window.bottom, window.left, window.right]
    for a in axes:
        data = np.take(data, [0 if editor.is_vendor(node) else before[a]], axis=1 + a)
        padding[2 * a : 2 * a + 2] = 0, 0
    data.setflags(write=False)
    taps = editor.add_tensor(replace(weights, shape=data.shape, data=data))
    changed = _with_padding(node, tuple(padding))
    if any(before[a] for a in axes):
        changed = with_attributes(changed, departure=_DEPARTURE)
    editor.replace(node, replace(changed, inputs=(node.inputs[0], taps, *node.inputs[2:])))


def _with_padding(node: Node, padding: tuple[int, ...]) -> Node:
    if any(padding):
        return with_attributes(node, explicit_padding=padding)
    kept = {name: value for name, value in node.attributes.items() if name != "explicit_padding"}
    return replace(node, attributes=Attributes({**kept, "padding": "valid"}))
