"""Gives a graph's inputs other shapes, and every tensor behind them the shape that follows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from tflq.errors import GraphError, TflqError, UnsupportedError
from tflq.graph import ABSENT, Graph, Node
from tflq.interpreter.execution.control import CONTROL
from tflq.interpreter.execution.deferred import Deferred, DeferredNode
from tflq.interpreter.execution.lowering import lower_node, shared
from tflq.interpreter.execution.values import Value
from tflq.interpreter.registry import Kernel


def resize(graph: Graph, shapes: Mapping[int, tuple[int, ...]], default_arithmetic: str = "tflite") -> Graph:
    """Return the graph for other input shapes.

    Each node is lowered and run once on zeros, so the shapes are those that the kernels themselves give.

    Args:
        graph: a graph that is not lowered.
        shapes: graph input -> new shape.
        default_arithmetic: whose kernels give the shapes.

    Raises:
        GraphError: a tensor is no input of the graph, or the new shapes do not fit an operator.
        UnsupportedError: an operator or type without a kernel.
    """
    resized = graph.copy()
    for t, shape in shapes.items():
        if t not in graph.inputs:
            raise GraphError(f"tensor {t} is no input of the graph; inputs are {list(graph.inputs)}")
        if min(shape, default=0) < 0:
            raise GraphError(f"input '{graph.tensors[t].name}': shape {shape}, sizes must be 0 or more")
        resized.tensors[t] = replace(graph.tensors[t], shape=tuple(shape))
    values: dict[int, Value] = {i: shared(t.data) for i, t in enumerate(resized.tensors) if t.data is not None}
    for t in resized.inputs:
        tensor = resized.tensors[t]
        values[t] = np.zeros((1, *tensor.shape), tensor.dtype.storage)
    for index, node in enumerate(resized.nodes):
        if node.operator in CONTROL:
            break  # what other graphs return is known when they run
        for t, value in zip(node.outputs, _run(resized, index, values, default_arithmetic), strict=False):
            values[t] = value
            if isinstance(value, np.ndarray):
                resized.tensors[t] = replace(resized.tensors[t], shape=value.shape[1:])
    return resized


def _run(graph: Graph, index: int, values: dict[int, Value], default_arithmetic: str) -> Sequence[Value]:
    """Run a node on zeros; where it refuses zeros (as a divisor, say), on ones."""
    where = graph.where(index)
    inputs = [None if t == ABSENT else _value(graph, t, values) for t in graph.nodes[index].inputs]
    try:
        lowered, found = lower_node(graph, index, default_arithmetic)
        try:
            return _results(graph, index, lowered, found, inputs)
        except TflqError:
            return _results(graph, index, lowered, found, [_ones(graph, t, values) for t in lowered.inputs])
    except UnsupportedError:
        raise
    except (ValueError, IndexError, TflqError) as error:
        reason = str(error).removeprefix(f"{where}: ")
        raise GraphError(f"{where}: the new input shapes do not fit: {reason}") from None


def _results(graph: Graph, index: int, lowered: Node, found: Kernel, inputs: Sequence[Value | None]) -> Sequence[Value]:
    if isinstance(lowered.params, Deferred):
        return DeferredNode(graph.nodes[index], graph.operands(index), found).run(inputs, 1)
    return found.run(lowered.params, *inputs)


def _ones(graph: Graph, t: int, values: dict[int, Value]) -> Value | None:
    value = None if t == ABSENT else _value(graph, t, values)
    constant = t != ABSENT and graph.tensors[t].is_constant
    return np.ones_like(value) if isinstance(value, np.ndarray) and not constant else value


def _value(graph: Graph, t: int, values: dict[int, Value]) -> Value:
    tensor = graph.tensors[t]
    return values[t] if t in values else np.zeros((1, *tensor.shape), tensor.dtype.storage)
