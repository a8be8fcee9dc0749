"""Checks that a graph does not contradict itself, whatever file it came from."""

from __future__ import annotations

from tflq.errors import GraphError
from tflq.graph.graph import ABSENT, Graph


def validate(graph: Graph, where: str = "graph") -> None:
    """Check indices, single assignment, order of execution and the shapes of constants.

    Raises:
        GraphError: names the first node or tensor that does not fit.
    """
    count = len(graph.tensors)
    for role, indices in (("input", graph.inputs), ("output", graph.outputs)):
        for t in indices:
            if not 0 <= t < count:
                raise GraphError(f"{where}: {role} {t} is out of range, tensors are 0..{count - 1}")
    _check_constants(graph, where)
    _check_nodes(graph, where)


def _check_constants(graph: Graph, where: str) -> None:
    for i, tensor in enumerate(graph.tensors):
        if any(size < 0 for size in tensor.shape):
            raise GraphError(f"{where}: tensor {i} '{tensor.name}' has shape {tensor.shape}, sizes are 0 or more")
        if tensor.data is not None and tensor.data.shape != tensor.shape:
            raise GraphError(
                f"{where}: tensor {i} '{tensor.name}' has shape {tensor.shape}, its data has {tensor.data.shape}"
            )


def _check_nodes(graph: Graph, where: str) -> None:
    known = {i for i, t in enumerate(graph.tensors) if t.is_constant or t.is_variable} | set(graph.inputs)
    writers: dict[int, int] = {}
    for i, node in enumerate(graph.nodes):
        for t in node.inputs + node.outputs:
            if t != ABSENT and not 0 <= t < len(graph.tensors):
                raise GraphError(f"{where}: {graph.where(i)} names tensor {t}, tensors are 0..{len(graph.tensors) - 1}")
        for t in node.inputs:
            if t != ABSENT and t not in known:
                raise GraphError(
                    f"{where}: {graph.where(i)} reads tensor {t} '{graph.tensors[t].name}', which is neither a "
                    f"constant nor an input nor written by an earlier operator"
                )
        for t in node.outputs:
            if t in writers or graph.tensors[t].is_constant:
                raise GraphError(f"{where}: {graph.where(i)} writes tensor {t}, which already has a value")
            writers[t] = i
            known.add(t)
    missing = [t for t in graph.outputs if t not in known]
    if missing:
        raise GraphError(f"{where}: output tensor {missing[0]} is written by no operator")
