"""What the Optimizer changes in the float graph before it quantizes (docs/aipu.md, 6).

Mul by one constant number becomes BatchNorm; Pow with one constant exponent becomes a function of its base; a MatMul
takes the number that it is multiplied by.

Source: Compass Optimizer, passes/merge_matmul_mul_s1.py and shrink_pow_exponent_s1.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from tflq.graph import Array, Attributes, DType, Graph, Node, Tensor
from tflq.interpreter.kernels.aipu.norms import WITHIN
from tflq.interpreter.kernels.aipu.pairs_by_table import EXPONENT
from tflq.interpreter.kernels.aipu.unweighted import FUSED_MULTIPLIER

CUT = "is_cut"
"""Own key of a Crop that was a product with a number: the Optimizer writes no is_perf_mode of it."""

_SHAPES = ("reshape", "transpose")

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
    for node in [n for n in work.nodes if n.operator == "mat_mul"]:
        _merge_multiplier(work, node)
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
    weights = np.full(x.shape[-1], value.item(), np.float32)
    constants = {"weights": weights, "biases": np.zeros_like(weights)}
    added = tuple(graph.add_tensor(_tensor(f"{node.name}/{key}", data)) for key, data in constants.items())
    attributes = node.attributes.updated(axis=len(x.shape) - 1, epsilon=0, **{MERGED: True})
    return replace(node, operator="batch_norm", inputs=(node.inputs[1 - position], *added), attributes=attributes)


def _merge_multiplier(graph: Graph, product: Node) -> None:
    """Let a MatMul multiply by the positive number that alone reads it, or else by those that its operands have.

    The layer of the number becomes a Crop of everything. What is read behind a MatMul is then scaled already, so it has
    the range of the product with the number.
    """
    readers, writers = graph.consumers(), graph.producers()
    places = {node.name: index for index, node in enumerate(graph.nodes)}
    found = _alone(graph, readers, product.outputs[0])
    passed = [product.outputs[0]]
    while found is not None and found.operator in _SHAPES:
        passed.append(found.outputs[0])
        found = _alone(graph, readers, found.outputs[0])
    if found is None and len(readers.get(product.outputs[0], ())) != 1:
        return
    number = None if found is None else _positive_number(graph, found, passed[-1])
    if found is not None and number is not None:
        _cut(graph, places, found, passed[-1])
        for t in passed:
            graph.tensors[t] = replace(graph.tensors[t], range=graph.tensors[found.outputs[0]].range)
        _multiply(graph, places, product, number)
        return
    waiting, scaled = [t for t in product.inputs if t in writers], list[tuple[Node, float]]()
    while waiting:
        before = graph.nodes[writers[t := waiting.pop(0)]]
        if len(readers.get(t, ())) != 1:
            continue
        if before.operator in _SHAPES:
            waiting += [i for i in before.inputs[:1] if i in writers]
            continue
        one = _positive_number(graph, before, before.inputs[0]) if before.operator == "batch_norm" else None
        if one is None:
            break
        scaled.append((before, one))
    for before, _ in scaled:
        _cut(graph, places, before, before.inputs[0])
    if scaled:
        _multiply(graph, places, product, float(np.prod([np.float32(m) for _, m in scaled], dtype=np.float32)))


def _alone(graph: Graph, readers: Mapping[int, Sequence[int]], t: int) -> Node | None:
    """Return the node that alone reads a tensor, whether it is an output or not."""
    found = readers.get(t, ())
    return graph.nodes[found[0]] if len(found) == 1 else None


def _positive_number(graph: Graph, node: Node, x: int) -> float | None:
    """Return the one positive number by which a layer multiplies `x` and does nothing else; None for other layers.

    A Constant that other layers read too stays, and with it the Mul.
    """
    values: Array | None = None
    if node.operator == "batch_norm":
        weights, biases = (graph.tensors[t].data for t in node.inputs[1:3])
        if biases is not None and not np.any(biases):
            values = weights
    elif _is_product(node):
        other = next((t for t in node.inputs if t != x), x)
        values = _constant(graph, other)
        is_shared = sum(one.inputs.count(other) for one in graph.nodes) > 1
        if is_shared or graph.tensors[node.outputs[0]].shape != graph.tensors[x].shape:
            return None
    if values is None or np.unique(values).size != 1:
        return None
    number = float(np.float32(np.asarray(values).reshape(-1)[0]))
    return number if number > 0 and node.attributes.get("with_activation", "NONE") == "NONE" else None


def _is_product(node: Node) -> bool:
    return node.operator == "mul" or (node.operator == "eltwise" and node.attributes.get("method") == "MUL")


def _cut(graph: Graph, places: Mapping[str, int], node: Node, x: int) -> None:
    crops = np.array([(0, n) for n in graph.tensors[node.outputs[0]].shape], np.int64)
    attributes = Attributes({"crops": crops, CUT: True})
    graph.nodes[places[node.name]] = replace(node, operator="crop", inputs=(x,), attributes=attributes)


def _multiply(graph: Graph, places: Mapping[str, int], product: Node, number: float) -> None:
    changed = replace(product, attributes=product.attributes.updated(**{FUSED_MULTIPLIER: number}))
    graph.nodes[places[product.name]] = changed


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
