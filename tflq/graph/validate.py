"""Checks that a graph does not contradict itself, whatever file it came from."""

from __future__ import annotations

import math

from tflq.errors import GraphError
from tflq.graph.graph import ABSENT, Graph, Tensor
from tflq.graph.quantisation import Affine, Blockwise

_MOST_BYTES = (1 << 63) - 1


def validate(graph: Graph, where: str = "graph") -> None:
    """Check indices, single assignment, order of execution, shapes, and that quantisations fit them.

    Raises:
        GraphError: names the first node or tensor that does not fit.
    """
    count = len(graph.tensors)
    for role, indices in (("input", graph.inputs), ("output", graph.outputs)):
        for t in indices:
            if not 0 <= t < count:
                raise GraphError(f"{where}: {role} {t} is out of range; {_tensors(graph)}")
    for i, tensor in enumerate(graph.tensors):
        _check_tensor(tensor, count, f"{where}: tensor {i} '{tensor.name}'")
    for t in graph.inputs:
        if graph.tensors[t].is_constant:
            raise GraphError(f"{where}: input {t} '{graph.tensors[t].name}' is a constant; inputs have no value")
    _check_nodes(graph, where)


def _check_tensor(tensor: Tensor, count: int, where: str) -> None:
    if any(size < 0 for size in tensor.shape):
        raise GraphError(f"{where}: found shape {tensor.shape}; sizes are 0 or more")
    if math.prod(tensor.shape) * max(1, tensor.dtype.storage.itemsize) > _MOST_BYTES:
        raise GraphError(f"{where}: found shape {tensor.shape}; a tensor has less than 2^63 bytes")
    if tensor.data is not None and tensor.data.shape != tensor.shape:
        raise GraphError(f"{where}: found shape {tensor.shape}, but its data has {tensor.data.shape}")
    if isinstance(tensor.quantisation, Affine):
        _check_affine(tensor.quantisation, tensor.shape, where)
    if isinstance(tensor.quantisation, Blockwise):
        _check_blocks(tensor.quantisation, count, where)


def _check_affine(affine: Affine, shape: tuple[int, ...], where: str) -> None:
    scales, zero_points, axis = affine.scale.size, affine.zero_point.size, affine.axis
    if scales < 1 or zero_points not in (1, scales):
        raise GraphError(f"{where}: {scales} scales and {zero_points} zero points; as many of each, at least 1")
    if scales > 1 and (axis is None or not 0 <= axis < len(shape) or shape[axis] != scales):
        raise GraphError(f"{where}: {scales} scales along axis {axis} do not fit a tensor of shape {shape}")


def _check_blocks(blocks: Blockwise, count: int, where: str) -> None:
    for role, t, lowest in (("scales", blocks.scales, 0), ("zero points", blocks.zero_points, ABSENT)):
        if not lowest <= t < count:
            raise GraphError(f"{where}: its {role} are tensor {t}; allowed are {lowest}..{count - 1}")
    if blocks.block_size < 1:
        raise GraphError(f"{where}: found blocks of {blocks.block_size} elements; at least 1 is allowed")


def _check_nodes(graph: Graph, where: str) -> None:
    known = {i for i, t in enumerate(graph.tensors) if t.is_constant or t.is_variable} | set(graph.inputs)
    writers: dict[int, int] = {}
    for i, node in enumerate(graph.nodes):
        _check_indices(graph, i, where)
        for t in node.inputs:
            if t != ABSENT and t not in known:
                raise GraphError(
                    f"{where}: {graph.where(i)} reads tensor {t} '{graph.tensors[t].name}', which is neither a "
                    f"constant nor an input nor written by an earlier operator"
                )
        for t in node.outputs:
            if t in writers or t in graph.inputs or graph.tensors[t].is_constant:
                raise GraphError(
                    f"{where}: {graph.where(i)} writes tensor {t} '{graph.tensors[t].name}', which has a value already"
                )
            writers[t] = i
            known.add(t)
    missing = [t for t in graph.outputs if t not in known]
    if missing:
        name = graph.tensors[missing[0]].name
        raise GraphError(f"{where}: output tensor {missing[0]} '{name}' is written by no operator")


def _check_indices(graph: Graph, i: int, where: str) -> None:
    node = graph.nodes[i]
    for verb, indices, lowest in (
        ("reads", node.inputs, ABSENT),
        ("writes", node.outputs, 0),
        ("scales by", node.intermediates or (), ABSENT),
    ):
        for t in indices:
            if not lowest <= t < len(graph.tensors):
                raise GraphError(f"{where}: {graph.where(i)} {verb} tensor {t}; {_tensors(graph)}")


def _tensors(graph: Graph) -> str:
    count = len(graph.tensors)
    return f"tensors are 0..{count - 1}" if count else "the graph has no tensors"
