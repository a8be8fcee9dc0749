"""What a graph that another one runs must get."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tflq.errors import GraphError
from tflq.graph import Graph
from tflq.interpreter.execution.values import Value


def require_call(number: int, graph: Graph, inputs: Sequence[Value]) -> None:
    """Check the values that an operator gives to a subgraph.

    Raises:
        GraphError: another number of them than it has inputs, or another type.
    """
    if len(inputs) != len(graph.inputs):
        raise GraphError(f"subgraph {number} has {len(graph.inputs)} inputs, its caller gives {len(inputs)}")
    for t, value in zip(graph.inputs, inputs, strict=True):
        tensor = graph.tensors[t]
        if isinstance(value, np.ndarray) and value.dtype not in (tensor.dtype.storage, np.dtype(object)):
            raise GraphError(f"subgraph {number}: input '{tensor.name}' is {tensor.dtype.value}, got {value.dtype}")
