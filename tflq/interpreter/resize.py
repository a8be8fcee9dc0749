"""Gives a graph's inputs other shapes, and every tensor behind them the shape that follows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tflq.errors import GraphError, TflqError
from tflq.graph import ABSENT, Array, Graph
from tflq.interpreter.lowering import lower_node, shared


def resize(graph: Graph, shapes: Mapping[int, tuple[int, ...]], default_arithmetic: str = "tflite") -> Graph:
    """Return the graph for other input shapes.

    Each node is lowered and run once on zeros, so the shapes are those that the kernels themselves give.

    Args:
        graph: a graph that is not lowered.
        shapes: graph input -> new shape.
        default_arithmetic: whose kernels give the shapes.

    Raises:
        GraphError: a tensor is no input of the graph, or the new shapes do not fit an operator.
    """
    resized = graph.copy()
    for t, shape in shapes.items():
        if t not in graph.inputs:
            raise GraphError(f"tensor {t} is no input of the graph; inputs are {list(graph.inputs)}")
        if min(shape, default=0) < 0:
            raise GraphError(f"input '{graph.tensors[t].name}': shape {shape}, sizes must be 0 or more")
        resized.tensors[t] = replace(graph.tensors[t], shape=tuple(shape))
    values: dict[int, Array] = {i: shared(t.data) for i, t in enumerate(resized.tensors) if t.data is not None}
    for t in resized.inputs:
        tensor = resized.tensors[t]
        values[t] = np.zeros((1, *tensor.shape), tensor.dtype.storage)
    for index, node in enumerate(resized.nodes):
        try:
            lowered, found = lower_node(resized, index, default_arithmetic)
            results = found.run(lowered.integers, *(None if t == ABSENT else values[t] for t in node.inputs))
        except (ValueError, IndexError) as error:
            raise GraphError(f"{resized.where(index)}: the new input shapes do not fit: {error}") from None
        except TflqError as error:
            raise GraphError(f"{resized.where(index)}: the new input shapes do not fit: {error}") from None
        for t, value in zip(node.outputs, results, strict=True):
            values[t] = value
            resized.tensors[t] = replace(resized.tensors[t], shape=value.shape[1:])
    return resized
