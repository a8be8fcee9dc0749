"""A slice along one axis is a split whose other pieces nobody reads, as in NNTool's graphs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tflq.converters.gap9.check import vendor_failure
from tflq.converters.gap9.operators import departing, layer_of
from tflq.converters.gap9.options import LayerOptions
from tflq.converters.passes.rewrite import constant, derived_tensor
from tflq.errors import UnsupportedError
from tflq.graph import Array, Attributes, Graph, Node
from tflq.interpreter.registry import kernel

UNUSED = "unused_pieces"
"""Attribute: the outputs that nobody reads; they count as graph outputs where types are chosen."""
_FAILURE = "NNTool fails on a slice that drops what stands in front, and the convolution behind it (17.11)"


def split_slices(graph: Graph, options: Mapping[str, LayerOptions]) -> Graph:
    """Return the graph with SPLIT_V in place of slices with step 1 that cut one axis alone.

    Raises:
        UnsupportedError: with numerics=nntool, slices on which NNTool fails.
    """
    result = graph.copy()
    for index, node in enumerate(graph.nodes):
        if node.operator in ("slice", "strided_slice") and (found := _cut(graph, index)) is not None:
            made, layer = _split(result, node, *found), options[layer_of(node)]
            fails = found[1] > 0 and _is_convolved(graph, node.outputs[0], layer.feature_bits)
            if fails and layer.numerics == "nntool":
                raise UnsupportedError(f"{graph.where(index)}: {_FAILURE}; numerics=exact converts it")
            said = (_FAILURE if fails else "", vendor_failure(graph, node))
            for text in filter(None, said):
                made = departing(made, text)
            result.nodes[index] = made
    return result


def _is_convolved(graph: Graph, tensor: int, feature_bits: int) -> bool:
    """Whether a convolution reads it: with 16-bit features any, else one whose kernel is larger than 1x1."""
    readers = [graph.nodes[index] for index in graph.consumers().get(tensor, ())]
    kernels = [graph.tensors[n.inputs[1]].shape[1:3] for n in readers if n.operator == "conv_2d"]
    return any(feature_bits == 16 or kernel != (1, 1) for kernel in kernels)


def _cut(graph: Graph, index: int) -> tuple[int, int, int] | None:
    """Return axis, first and count of what a slice keeps; None where it is more than a cut along one axis."""
    node = graph.nodes[index]
    shape, kept = (graph.tensors[t].shape for t in (node.inputs[0], node.outputs[0]))
    if len(shape) != len(kept):
        return None
    axes = [a for a, (size, left) in enumerate(zip(shape, kept, strict=True)) if size != left]
    if len(axes) != 1 or axes[0] == 0:
        return None
    axis = axes[0]
    picked = _picked(graph, index, axis)
    return (axis, int(picked.min()), kept[axis]) if picked.size and np.all(np.diff(picked, axis=axis) == 1) else None


def _picked(graph: Graph, index: int, axis: int) -> Array:
    """Return the place along one axis of each element that the operator's own kernel keeps."""
    node, operands = graph.nodes[index], graph.operands(index)
    shape = operands.input(0).shape
    places = np.arange(shape[axis], dtype=np.int64).reshape([-1 if a == axis else 1 for a in range(len(shape))])
    image = np.broadcast_to(places, (1, *shape))
    rule = kernel("gap9", node.operator)
    (result,) = rule.run(rule.lower(node, operands), image, *(None,) * (len(node.inputs) - 1))
    kept: Array = result.squeeze(axis=0)
    return kept


def _split(graph: Graph, node: Node, axis: int, first: int, count: int) -> Node:
    """Return the split: the piece in front of what is kept, that, the piece behind it; empty ones are left out."""
    source = graph.tensors[node.inputs[0]]
    sizes = (first, count, source.shape[axis] - first - count)
    outputs: list[int] = []
    unused: list[int] = []
    for place, size in enumerate(sizes):
        if place == 1:
            outputs.append(node.outputs[0])
        elif size:
            t = derived_tensor(graph, node.inputs[0], f"{node.name}_unused{len(unused)}")
            shape = tuple(size if a == axis else n for a, n in enumerate(source.shape))
            graph.tensors[t] = replace(graph.tensors[t], shape=shape)
            unused.append(len(outputs))
            outputs.append(t)
    lengths = graph.add_tensor(constant(f"{node.name}_sizes", np.array([s for s in sizes if s], np.int32)))
    place = graph.add_tensor(constant(f"{node.name}_axis", np.array(axis, np.int32)))
    attributes = Attributes({"layer": node.name, "num_splits": len(outputs), UNUSED: tuple(unused)})
    return Node("split_v", (node.inputs[0], lengths, place), tuple(outputs), attributes, node.name)
