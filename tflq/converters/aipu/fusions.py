"""Operators of TFLite that together are one layer of Compass, as its Parser finds them (docs/aipu.md, 6).

Mul and Add by constants: BatchNorm. Mean, squared difference, mean: Moments. log(exp(x) + 1): Softplus. Minimum and
maximum by numbers: CLIP. A rectifier behind a layer that can fuse it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tflq.graph import Graph, Node

BATCH_NORM, CLIP, MOMENTS, RECTIFIED, SOFTPLUS = "batch_norm", "clip", "moments", "rectified", "softplus"
_FUSES = ("add", "conv_2d", "depthwise_conv_2d", "fully_connected", "maximum", "minimum", "mul", "sub")


@dataclass(frozen=True)
class Fusion:
    """Several nodes that become one layer.

    Attributes:
        kind: which layer.
        nodes: indices, in order; the layer stands at `place`.
        place: index of the node where the layer stands: the last one, of Moments the first.
    """

    kind: str
    nodes: tuple[int, ...]
    place: int


def sides(graph: Graph, node: Node) -> tuple[int, int]:
    """Return the computed and the constant operand of a node that does not mind their order; else as they stand."""
    a, b = node.inputs
    swapped = graph.tensors[a].is_constant and not graph.tensors[b].is_constant
    return (b, a) if swapped else (a, b)


def find_fusions(graph: Graph) -> Mapping[int, Fusion]:
    """Return index of a node -> the fusion that it belongs to."""
    search = _Search(graph, graph.consumers(), graph.producers())
    found: dict[int, Fusion] = {}
    for kind, rule in _RULES:
        for index in range(len(graph.nodes)):
            nodes = rule(search, index)
            if nodes and not any(n in found for n in nodes):
                found.update(dict.fromkeys(nodes, Fusion(kind, nodes, nodes[0] if kind == MOMENTS else nodes[-1])))
    return found


@dataclass(frozen=True)
class _Search:
    graph: Graph
    consumers: Mapping[int, list[int]]
    producers: Mapping[int, int]

    def node(self, index: int) -> Node:
        return self.graph.nodes[index]

    def is_a(self, index: int | None, *operators: str) -> bool:
        return index is not None and self.node(index).operator in operators and not self.node(index).custom_code

    def only_reader(self, index: int) -> int | None:
        """Return the node that alone reads the one output of a node, which is none of the graph's outputs."""
        (t, *others) = self.node(index).outputs
        readers = self.consumers.get(t, [])
        return readers[0] if len(readers) == 1 and not others and t not in self.graph.outputs else None

    def number(self, index: int, value: float | None = None) -> bool:
        """Whether one operand is one constant number, that one if it is given."""
        data = self.graph.tensors[sides(self.graph, self.node(index))[1]].data
        is_one = data is not None and data.size == 1
        return is_one and (value is None or float(np.asarray(data).reshape(-1)[0]) == value)

    def by_channel(self, index: int) -> bool:
        """Whether one operand is a constant with one value for each last coordinate of the other."""
        x, other = (self.graph.tensors[t] for t in sides(self.graph, self.node(index)))
        is_vector = bool(x.shape) and other.shape[-1:] == x.shape[-1:] and other.size == x.shape[-1]
        return is_vector and other.is_constant and not x.is_constant

    def is_plain(self, index: int) -> bool:
        return self.node(index).attributes.text("fused_activation_function", "none") == "none"


def _batch_norm(search: _Search, index: int) -> tuple[int, ...]:
    if not search.is_a(index, "mul") or not search.by_channel(index) or not search.is_plain(index):
        return ()
    last = search.only_reader(index)
    if last is None or not search.is_a(last, "add") or not search.by_channel(last):
        return ()
    return index, last


def _clip(search: _Search, index: int) -> tuple[int, ...]:
    if not search.is_a(index, "minimum", "maximum") or not search.number(index):
        return ()
    other = "maximum" if search.is_a(index, "minimum") else "minimum"
    last = search.only_reader(index)
    return (index, last) if last is not None and search.is_a(last, other) and search.number(last) else ()


def _softplus(search: _Search, index: int) -> tuple[int, ...]:
    if not search.is_a(index, "exp"):
        return ()
    add = search.only_reader(index)
    if add is None or not search.is_a(add, "add") or not search.number(add, 1.0) or not search.is_plain(add):
        return ()
    log = search.only_reader(add)
    return (index, add, log) if log is not None and search.is_a(log, "log") else ()


def _moments(search: _Search, index: int) -> tuple[int, ...]:
    """Mean of x; squared difference of x and it; mean of that over the same axes; both keep their axes."""
    if not search.is_a(index, "mean") or not search.node(index).attributes.boolean("keep_dims", False):
        return ()
    x, axes = search.node(index).inputs
    mean = search.node(index).outputs[0]
    for reader in search.consumers.get(mean, []):
        if not search.is_a(reader, "squared_difference") or set(search.node(reader).inputs) != {x, mean}:
            continue
        last = search.only_reader(reader)
        if last is not None and search.is_a(last, "mean") and _same_axes(search, search.node(last), axes):
            return index, reader, last
    return ()


def _same_axes(search: _Search, node: Node, axes: int) -> bool:
    ours, theirs = (search.graph.tensors[t].data for t in (node.inputs[1], axes))
    is_same = ours is not None and theirs is not None and np.array_equal(np.sort(ours, None), np.sort(theirs, None))
    return is_same and node.attributes.boolean("keep_dims", False)


def _rectified(search: _Search, index: int) -> tuple[int, ...]:
    if not search.is_a(index, *_FUSES) or not search.is_plain(index):
        return ()
    last = search.only_reader(index)
    return (index, last) if last is not None and search.is_a(last, "relu", "relu6") else ()


# The first rule that finds a node has it.
_RULES = (
    (MOMENTS, _moments),
    (SOFTPLUS, _softplus),
    (BATCH_NORM, _batch_norm),
    (CLIP, _clip),
    (RECTIFIED, _rectified),
)
