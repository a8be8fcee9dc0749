"""Gives a graph's inputs other shapes, and every tensor behind them the shape that follows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tflq.errors import GraphError
from tflq.graph import Graph
from tflq.interpreter.execution.settle import settle


def resize(graph: Graph, shapes: Mapping[int, tuple[int, ...]], default_arithmetic: str = "tflite") -> Graph:
    """Return the graph for other input shapes; where shapes are known only at run time, the stated ones stay.

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
    try:
        settled = settle(resized, default_arithmetic)
    except GraphError as error:
        where, colon, reason = str(error).partition("): ")
        raise GraphError(f"{where}{colon}the new input shapes do not fit: {reason}") from None
    if settled.refused:
        raise settled.refused[0]
    return replace(
        resized,
        tensors=[
            replace(tensor, shape=found.shape)
            for tensor, found in zip(resized.tensors, settled.graph.tensors, strict=True)
        ],
    )
