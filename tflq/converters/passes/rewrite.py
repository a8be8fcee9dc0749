"""Small steps that passes share. Those that return nothing change a graph whose lists may change: a copy."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from tflq.arrays import Reals
from tflq.graph import Array, Attribute, DType, Graph, Node, Quantization, Range, Tensor
from tflq.graph.rewriting import GraphEditor


def with_attributes(node: Node, **changes: Attribute) -> Node:
    """Return the node with some attributes replaced or added."""
    return replace(node, attributes=node.attributes.updated(**changes))


def with_input(node: Node, position: int, tensor: int) -> Node:
    """Return the node with another tensor at one position."""
    return replace(node, inputs=tuple(tensor if p == position else t for p, t in enumerate(node.inputs)))


def constant(
    name: str,
    data: Array,
    quantization: Quantization | None = None,
    dtype: DType | None = None,
    range_: Range | None = None,
) -> Tensor:
    """Return a constant tensor; its data is read-only from now on.

    Args:
        name: of the tensor.
        data: its value, as it is stored.
        quantization: how it stands for real numbers.
        dtype: where it is not that of the data, as int4 in bytes.
        range_: of the real numbers.
    """
    data = np.asarray(data)
    data.setflags(write=False)
    return Tensor(name, data.shape, dtype or DType.of(data.dtype), quantization, range_, data)


def derived_tensor(graph: Graph | GraphEditor, like: int, name: str, shape: tuple[int, ...] | None = None) -> int:
    """Add a computed tensor that is like another one, under a new name, and perhaps of another shape."""
    stated = graph.tensors[like]
    return graph.add_tensor(replace(stated, name=name, shape=stated.shape if shape is None else shape, data=None))


def redirect(graph: Graph, old: int, new: int) -> None:
    """Let every reader of tensor `old`, and the graph's outputs, read `new`."""
    for i, node in enumerate(graph.nodes):
        if old in node.inputs:
            graph.nodes[i] = replace(node, inputs=tuple(new if t == old else t for t in node.inputs))
    graph.outputs = tuple(new if t == old else t for t in graph.outputs)


def without_nodes(graph: Graph, gone: Collection[int]) -> Graph:
    """Return the graph without some nodes; tensors stay."""
    return replace(graph, nodes=[node for index, node in enumerate(graph.nodes) if index not in gone])


def channel_maxima(values: Reals, axis: int | None) -> Reals:
    """Return the largest magnitudes max|w[c]| along an axis, one for each channel: [C]; [1] of all where it is None."""
    others = tuple(a for a in range(values.ndim) if a != axis)
    largest: Reals = np.asarray(np.abs(values).max(axis=others, initial=0)).reshape(-1)
    return largest


def channel_bounds(values: Reals, axis: int | None) -> tuple[Reals, Reals]:
    """Return min(w[c], 0) and max(w[c], 0) along an axis, one each for each channel, or of all where it is None."""
    others = tuple(a for a in range(values.ndim) if a != axis)
    low, high = (np.asarray(f(axis=others, initial=0)).reshape(-1) for f in (values.min, values.max))
    return low, high
