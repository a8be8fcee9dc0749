"""Convolutions side by side on one tensor become one convolution and a split."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.converters.gap9.editor import Gap9Editor
from tflq.converters.gap9.operators import layer_of
from tflq.converters.passes.patterns import bias_of
from tflq.converters.passes.rewrite import constant, with_attributes
from tflq.graph import Affine, Array, Attributes, Node, Range, Tensor

_SAME = ("padding", "explicit_padding", "stride_h", "stride_w", "dilation_h_factor", "dilation_w_factor")


def merge_convolutions(editor: Gap9Editor) -> None:
    """Merge each set of parallel convolutions into one, <first>_merged, followed by a split.

    Merged are two or more convolutions on the same tensor outside fusions, of one group, with equal kernel,
    padding, stride, dilation, output shape and options. Their common range is the union, so all share one scale.
    """
    sets: dict[tuple[object, ...], list[Node]] = {}
    for node in editor.nodes:
        if node.operator != "conv_2d" or node.attributes.text("fusion", ""):
            continue
        image, weights = (editor.shape(t) for t in node.inputs[:2])
        if image[3] == weights[3]:
            window = tuple(node.attributes.get(name) for name in _SAME)
            key = (node.inputs[0], weights[1:3], editor.shape(node.outputs[0]), editor.option(node), *window)
            sets.setdefault(key, []).append(node)
    for nodes in sets.values():
        if len(nodes) > 1:
            _merge(editor, nodes)
    editor.sort()


def _merge(editor: Gap9Editor, nodes: list[Node]) -> None:
    first, name = nodes[0], f"{nodes[0].name}_merged"
    weights = editor.add_tensor(_joined([editor.tensors[n.inputs[1]] for n in nodes], f"{name}_weights"))
    bias = editor.add_tensor(_joined([_bias(editor, n) for n in nodes], f"{name}_bias"))
    outputs = [editor.tensors[n.outputs[0]] for n in nodes]
    union = _union(outputs)
    n, h, w, c = outputs[0].shape
    wide = editor.add_tensor(replace(outputs[0], name=name, shape=(n, h, w, c * len(nodes)), range=union))
    for node, output in zip(nodes, outputs, strict=True):
        editor.tensors[node.outputs[0]] = replace(output, range=union)
        editor.remove(node)
    axis = editor.add_tensor(constant(f"{name}_axis", np.array(3, np.int32)))
    attributes = Attributes({"layer": layer_of(first), "num_splits": len(nodes)})
    inputs, merged = (first.inputs[0], weights, bias), with_attributes(first, layer=layer_of(first))
    editor.add(replace(merged, name=name, inputs=inputs, outputs=(wide,)))
    editor.add(Node("split", (axis, wide), tuple(n.outputs[0] for n in nodes), attributes, f"{name}_split"))


def _union(tensors: list[Tensor]) -> Range | None:
    ranges = [t.range for t in tensors if t.range is not None]
    if not ranges:
        return None
    low = np.min([r.minimum for r in ranges], axis=0)
    return Range(low, np.max([r.maximum for r in ranges], axis=0))


def _bias(editor: Gap9Editor, node: Node) -> Tensor:
    stated = bias_of(editor, node)
    if stated is not None:
        return stated
    outputs = editor.shape(node.inputs[1])[0]
    one = Affine(np.ones(1, np.float32), np.zeros(1, np.int64), 0, 32, True)
    return constant(f"{node.name}_bias", np.zeros(outputs, np.int32), one)


def _joined(tensors: list[Tensor], name: str) -> Tensor:
    """Put constants behind each other along axis 0, each channel with its own scale."""
    arrays: list[Array] = [t.data for t in tensors if t.data is not None]
    data = np.concatenate(arrays)
    data.setflags(write=False)
    if not isinstance(tensors[0].quantization, Affine):
        return replace(tensors[0], name=name, shape=data.shape, data=data)
    scales = [np.broadcast_to(t.affine.scale, t.shape[:1]) for t in tensors]
    zero_points = [np.broadcast_to(t.affine.zero_point, t.shape[:1]) for t in tensors]
    q = replace(tensors[0].affine, scale=np.concatenate(scales), zero_point=np.concatenate(zero_points), axis=0)
    return replace(tensors[0], name=name, shape=data.shape, data=data, quantization=q, range=None)
