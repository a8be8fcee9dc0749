"""What the Optimizer changes in the float graph before it quantises (docs/aipu.md, 6).

Mul by one constant number becomes BatchNorm; Pow with one constant exponent becomes a function of its base.

Source: Compass Optimizer, passes/merge_matmul_mul_s1.py and shrink_pow_exponent_s1.py.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.graph import Array, DType, Graph, Node, Tensor
from tflq.interpreter.kernels.aipu.lrn import WITHIN
from tflq.interpreter.kernels.aipu.pairs_by_table import EXPONENT

MERGED = "is_merged"
"""Own key of a BatchNorm that was a Mul: it keeps the ordinary weight width."""


def rewrite(graph: Graph) -> Graph:
    """Return the graph with Mul and Pow by constants rewritten; constants that nothing reads any more are gone."""
    work = graph.copy()
    for index, node in enumerate(work.nodes):
        if node.operator == "mul":
            work.nodes[index] = _merged(work, node)
        elif node.operator == "pow":
            work.nodes[index] = _with_exponent(work, node)
        elif node.operator == "lrn" and node.attributes.text("method") == WITHIN:
            work.nodes[index] = replace(node, intermediates=None)
    read = {t for node in work.nodes for t in node.inputs} | set(work.outputs)
    unread = {t for node in graph.nodes for t in node.inputs} - read
    work.nodes = [n for n in work.nodes if n.operator != "constant" or n.outputs[0] not in unread]
    return work


def _merged(graph: Graph, node: Node) -> Node:
    """Return BatchNorm of the last axis for Mul by a number that is not whole, with a bias of 0; else the node."""
    position = next((i for i, t in enumerate(node.inputs) if _constant(graph, t) is not None), None)
    if position is None:
        return node
    place, x = node.inputs[position], graph.tensors[node.inputs[1 - position]]
    value = np.asarray(_constant(graph, place), np.float32)
    readers = sum(other.inputs.count(place) for other in graph.nodes)
    if readers > 1 or place in graph.outputs or value.size != 1 or value == np.rint(value) or not x.shape:
        return node
    weights = np.full(x.shape[-1], value.reshape(-1)[0], np.float32)
    constants = {"weights": weights, "biases": np.zeros_like(weights)}
    added = tuple(graph.add_tensor(_tensor(f"{node.name}/{key}", data)) for key, data in constants.items())
    attributes = node.attributes.updated(axis=len(x.shape) - 1, epsilon=0, **{MERGED: True})
    return replace(node, operator="batch_norm", inputs=(node.inputs[1 - position], *added), attributes=attributes)


def _with_exponent(graph: Graph, node: Node) -> Node:
    """Return Pow with the key exponent where all exponents are one constant number; its table is all that it needs."""
    value = _constant(graph, node.inputs[1])
    if value is None or np.unique(value).size != 1:
        return node
    exponent = float(np.asarray(value, np.float32).reshape(-1)[0])
    return replace(node, attributes=node.attributes.updated(**{EXPONENT: exponent}), intermediates=None)


def _constant(graph: Graph, t: int) -> Array | None:
    """Return the value of a tensor that a Constant layer writes."""
    found = next((n for n in graph.nodes if n.operator == "constant" and n.outputs[0] == t), None)
    return None if found is None else graph.tensors[found.inputs[0]].data


def _tensor(name: str, data: Array) -> Tensor:
    data.setflags(write=False)
    return Tensor(name, data.shape, DType.FLOAT32, data=data)
