"""A graph for another batch: what a converter folded for the batch of the file counts for any."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from tflq.converters.passes.rewrite import constant, with_attributes, with_input
from tflq.errors import TflqError, UnsupportedError
from tflq.graph import Array, Graph, Node
from tflq.interpreter.execution.settle import resize

_SHAPES = {"reshape": (0, 1), "slice": (0, 2), "broadcast_to": (0, 1), "transpose_conv": (2, 0)}
"""Operators that are told a shape: positions of the data and of the shape."""
_TIMES = 2
S = TypeVar("S")


def twice_the_batch(graph: Graph) -> Graph:
    """Return the graph for inputs whose first axis is twice as long.

    The batch is the outermost axis and stays that: where an operator is told a shape by a constant, the first entry
    grows with it: RESHAPE [1, 8, 8, 2] to [1, 128] becomes [N, 8, 8, 2] to [N, 128], [1, 10, 16] to [10, 16] becomes
    [N, 10, 16] to [10 N, 16].

    Raises:
        UnsupportedError: the inputs have no common first axis, or an operator does not take each sample for itself.
    """
    sizes = {graph.tensors[t].shape[:1] for t in graph.inputs}
    if len(sizes) != 1 or () in sizes:
        shapes = ", ".join(str(graph.tensors[t].shape) for t in graph.inputs)
        raise UnsupportedError(f"batch=dynamic: the inputs {shapes} have no common first axis")
    result, grown = graph.copy(), set(graph.inputs)
    for index, node in enumerate(graph.nodes):
        result.nodes[index] = replace(node, arithmetic=None)  # nodes that name theirs are not settled
        if not grown.isdisjoint(node.inputs):
            result.nodes[index] = _grown(result, result.nodes[index])
            grown.update(node.outputs)
    shapes_of = {t: (graph.tensors[t].shape[0] * _TIMES, *graph.tensors[t].shape[1:]) for t in graph.inputs}
    try:
        result = resize(result, shapes_of)
    except TflqError as error:
        raise UnsupportedError(f"batch=dynamic: {error}") from None
    for index, node in enumerate(graph.nodes):
        for t in grown.intersection(node.outputs):
            old, new = graph.tensors[t].shape, result.tensors[t].shape
            if not old or new != (old[0] * _TIMES, *old[1:]):
                raise UnsupportedError(
                    f"batch=dynamic: {graph.where(index)}: the batch is not the first axis behind it"
                )
    return result


def open_constant(one: Array, two: Array, is_shape: bool, where: str) -> Array:
    """Return a constant for any batch: unchanged, or a shape with -1 in place of the batch.

    Args:
        one: Constant for the batch of the file.
        two: Constant for twice the batch.
        is_shape: True if a Reshape reads the constant as its shape.
        where: Name of the constant in the error.

    Raises:
        UnsupportedError: The constants differ, and not in one size of a shape.
    """
    if np.array_equal(one, two, equal_nan=one.dtype.kind == "f"):
        return one
    if not is_shape or one.shape != two.shape or np.count_nonzero(one != two) != 1:
        raise UnsupportedError(f"batch=dynamic: {where} holds the batch; convert with batch=static")
    return np.where(one != two, -1, one)


def open_shape(one: Sequence[S], two: Sequence[S], symbol: S) -> tuple[S, ...]:
    """Return the shape for any batch: `symbol` for each size that differs for twice the batch."""
    return tuple(a if a == b else symbol for a, b in zip(one, two, strict=True))


def _grown(graph: Graph, node: Node) -> Node:
    if node.operator not in _SHAPES:
        return node
    position = _SHAPES[node.operator][1]
    data = graph.tensors[node.inputs[position]].data if position < len(node.inputs) else None
    if data is not None and data.size and int(data.reshape(-1)[0]) > 0:  # -1 follows by itself
        wanted = np.array(data)
        wanted.reshape(-1)[0] *= _TIMES
        name = f"{graph.tensors[node.inputs[position]].name}/batch"
        node = with_input(node, position, graph.add_tensor(constant(name, wanted)))
    stated = node.attributes.get("new_shape")
    if isinstance(stated, tuple) and stated and int(stated[0]) > 0:
        node = with_attributes(node, new_shape=(int(stated[0]) * _TIMES, *(int(s) for s in stated[1:])))
    return node
