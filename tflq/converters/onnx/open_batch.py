"""An ONNX graph whose first axis is open: the same network for two batches, and what differs between them."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import replace

import numpy as np

from tflq.converters.onnx.model import OnnxGraph, OnnxNode, OnnxValue
from tflq.errors import UnsupportedError
from tflq.graph import Array

SYMBOL = "N"


def open_batch(one: OnnxGraph, two: OnnxGraph) -> OnnxGraph:
    """Return a graph for any batch: in shapes of Reshape the axis that differs is -1, in those of ports it is "N".

    Args:
        one: for the file's batch.
        two: for twice the batch, otherwise the same.

    Raises:
        UnsupportedError: a constant that holds the batch and is no shape of a Reshape.
    """
    shapes = {n.inputs[1] for n in one.nodes if n.op_type == "Reshape"}
    sizes = {n.inputs[3] for n in one.nodes if n.op_type == "Resize"}
    found, resized = dict(one.constants), set[str]()
    for name, value in one.constants.items():
        other = two.constants[name]
        if np.array_equal(value, other, equal_nan=value.dtype.kind == "f"):
            continue
        if name in shapes and value.shape == other.shape and np.count_nonzero(value != other) == 1:
            found[name] = np.where(value != other, -1, value)
        elif name in sizes:
            found[name] = value[2:]
            resized.add(name)
        else:
            raise UnsupportedError(_reason(one, name))
    nodes = tuple(made for node in one.nodes for made in _resized(node, resized, found))
    inputs, outputs = (
        tuple(_open(a, b) for a, b in zip(mine, theirs, strict=True))
        for mine, theirs in ((one.inputs, two.inputs), (one.outputs, two.outputs))
    )
    return replace(one, nodes=nodes, constants=found, inputs=inputs, outputs=outputs)


def _reason(graph: OnnxGraph, name: str) -> str:
    node = next((n for n in graph.nodes if name in n.inputs), None)
    where = f"{node.op_type} '{node.outputs[0]}'" if node is not None else f"constant '{name}'"
    return f"batch=dynamic: {where} holds the batch; convert with batch=static"


def _resized(node: OnnxNode, names: Set[str], constants: dict[str, Array]) -> Iterator[OnnxNode]:
    """Yield a node; in front of a Resize whose size named the batch: its sizes from batch and channels of its input."""
    if node.op_type == "Resize" and node.inputs[3] in names:
        base = node.inputs[3]
        shape, front, whole, start, stop = (f"{base}_{part}" for part in ("shape", "front", "whole", "start", "stop"))
        constants[start], constants[stop] = np.array([0]), np.array([2])
        yield OnnxNode("Shape", node.inputs[:1], (shape,))
        yield OnnxNode("Slice", (shape, start, stop), (front,))
        yield OnnxNode("Concat", (front, base), (whole,), {"axis": 0})
        node = replace(node, inputs=(*node.inputs[:3], whole))
    yield node


def _open(one: OnnxValue, two: OnnxValue) -> OnnxValue:
    return replace(one, shape=tuple(a if a == b else SYMBOL for a, b in zip(one.shape, two.shape, strict=True)))
