"""Convolutions side by side on one tensor become one convolution and a split."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tflq.converters.gap9.operators import layer_of
from tflq.converters.gap9.options import LayerOptions
from tflq.converters.passes.patterns import bias_of
from tflq.converters.passes.rewrite import constant, sorted_nodes, with_attributes
from tflq.graph import Affine, Array, Attributes, Graph, Node, Range, Tensor

_SAME = ("padding", "explicit_padding", "stride_h", "stride_w", "dilation_h_factor", "dilation_w_factor")


def merge_convolutions(graph: Graph, options: Mapping[str, LayerOptions]) -> Graph:
    """Return the graph with each set of parallel convolutions as one, <first>_merged, followed by a split.

    Merged are two or more convolutions on the same tensor that no fusion holds, of one group, with equal kernel,
    padding, stride, dilation, output shape and options. Their common range is the union, so all share one scale.
    """
    result = graph.copy()
    for indices in _sets(graph, options):
        _merge(result, [graph.nodes[i] for i in indices])
    constants = {i for i, t in enumerate(result.tensors) if t.is_constant or t.is_variable}
    result.nodes = sorted_nodes(result.nodes, constants | set(result.inputs))
    return result


def _sets(graph: Graph, options: Mapping[str, LayerOptions]) -> list[list[int]]:
    found: dict[tuple[object, ...], list[int]] = {}
    for index, node in enumerate(graph.nodes):
        if node.operator != "conv_2d" or node.attributes.text("fusion", ""):
            continue
        x, weights = (graph.tensors[t] for t in node.inputs[:2])
        if x.shape[3] != weights.shape[3]:
            continue
        window = tuple(node.attributes.get(name) for name in _SAME)
        key = (node.inputs[0], weights.shape[1:3], graph.tensors[node.outputs[0]].shape, options[layer_of(node)])
        found.setdefault((*key, *window), []).append(index)
    return [indices for indices in found.values() if len(indices) > 1]


def _merge(graph: Graph, nodes: list[Node]) -> None:
    first, name = nodes[0], f"{nodes[0].name}_merged"
    weights = graph.add_tensor(_joined([graph.tensors[n.inputs[1]] for n in nodes], f"{name}_weights"))
    bias = graph.add_tensor(_joined([_bias(graph, n) for n in nodes], f"{name}_bias"))
    outputs = [graph.tensors[n.outputs[0]] for n in nodes]
    union = _union(outputs)
    n, h, w, c = outputs[0].shape
    wide = graph.add_tensor(replace(outputs[0], name=name, shape=(n, h, w, c * len(nodes)), range=union))
    for node, output in zip(nodes, outputs, strict=True):
        graph.tensors[node.outputs[0]] = replace(output, range=union)
    axis = graph.add_tensor(constant(f"{name}_axis", np.array(3, np.int32)))
    attributes = Attributes({"layer": layer_of(first), "num_splits": len(nodes)})
    split = Node("split", (axis, wide), tuple(n.outputs[0] for n in nodes), attributes, f"{name}_split")
    merged = replace(
        with_attributes(first, layer=layer_of(first)),
        name=name,
        inputs=(first.inputs[0], weights, bias),
        outputs=(wide,),
    )
    names = {n.name for n in nodes}
    graph.nodes = [n for n in graph.nodes if n.name not in names] + [merged, split]


def _union(tensors: list[Tensor]) -> Range | None:
    ranges = [t.range for t in tensors if t.range is not None]
    if not ranges:
        return None
    low = np.min([r.minimum for r in ranges], axis=0)
    return Range(low, np.max([r.maximum for r in ranges], axis=0))


def _bias(graph: Graph, node: Node) -> Tensor:
    given = bias_of(graph, node)
    if given is not None:
        return given
    outputs = graph.tensors[node.inputs[1]].shape[0]
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
