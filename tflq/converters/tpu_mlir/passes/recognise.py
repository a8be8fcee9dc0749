"""Operators that TFLite's converter has taken apart, and whose parts TPU-MLIR would fuse otherwise or wrongly."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tflq.converters.passes.patterns import fused_activation, only_reader
from tflq.converters.passes.rewrite import constant, without_nodes
from tflq.converters.tpu_mlir.passes.forms import Form, form_of, reduced_axes, scalar_of
from tflq.graph import ABSENT, Attributes, Graph, Node


def recognise_prelu(graph: Graph) -> Graph:
    """Return the graph with relu(x) + c * -relu(-x) as PRELU; TPU-MLIR would lose the inner rectifier."""
    result, gone = graph.copy(), set[int]()
    search = _Search(graph)
    for index, node in enumerate(graph.nodes):
        if node.operator != "add" or fused_activation(node) != "none":
            continue
        for left, right in ((0, 1), (1, 0)):
            positive = search.writer(node.inputs[left], "relu")
            product = search.writer(node.inputs[right], "mul")
            if positive is None or product is None:
                continue
            x, slopes = graph.nodes[product].inputs
            chain = search.chain(x, _INNER) if graph.tensors[slopes].is_constant else []
            if len(chain) == len(_INNER) and search.input(chain[-1]) == search.input(positive):
                inputs = (search.input(positive), slopes)
                result.nodes[index] = replace(node, operator="prelu", inputs=inputs, attributes=Attributes({}))
                gone.update((positive, product, *chain))
                break
    return without_nodes(result, gone)


_INNER = ("neg", "relu", "neg")


@dataclass
class _Search:
    """Questions about a graph: who writes what one node alone reads."""

    graph: Graph

    def __post_init__(self) -> None:
        self._writers = self.graph.producers()
        self._readers = self.graph.consumers()

    def input(self, node: int) -> int:
        """Return the first operand of a node."""
        return self.graph.nodes[node].inputs[0]

    def writer(self, t: int, operator: str, alone: bool = True) -> int | None:
        """Return the node of an operator that writes a tensor, which one node alone reads."""
        found = self._writers.get(t)
        if found is None or self.graph.nodes[found].operator != operator:
            return None
        if alone and only_reader(self.graph, t, self._readers) is None:
            return None
        return found if fused_activation(self.graph.nodes[found]) == "none" else None

    def chain(self, t: int, operators: tuple[str, ...]) -> list[int]:
        """Return the nodes of these operators, each writing what the one before reads."""
        found: list[int] = []
        for operator in operators:
            writer = self.writer(t, operator)
            if writer is None:
                break
            found.append(writer)
            t = self.input(writer)
        return found

    def readers(self, t: int) -> list[int]:
        """Return the nodes that read a tensor."""
        return list(dict.fromkeys(self._readers.get(t, ())))

    def other(self, node: Node, t: int) -> int | None:
        """Return the other operand of a node of two; None where it has no such operand or an activation."""
        if len(node.inputs) != 2 or t not in node.inputs or fused_activation(node) != "none":
            return None
        return node.inputs[1 - node.inputs.index(t)]


def recognise_layer_normalization(graph: Graph) -> Graph:
    """Return the graph with (x - m) / sqrt(v + eps) * gamma + beta over the last axis as `layer_normalization`.

    m and v are mean and variance of each row; Keras writes x * s + (beta - m * s) with s = gamma / sqrt(v + eps).
    """
    result, gone = graph.copy(), set[int]()
    search = _Search(graph)
    for index, node in enumerate(graph.nodes):
        if node.operator != "rsqrt":
            continue
        found = _Normalization.of(search, index)
        if found is not None:
            result.nodes[found.last] = _normalization(result, found)
            gone.update(found.parts - {found.last})
    return without_nodes(result, gone)


def _normalization(graph: Graph, found: _Normalization) -> Node:
    last = graph.nodes[found.last]
    channels = graph.tensors[found.x].shape[-1]
    values = []
    for what, t, default in (("gamma", found.gamma, 1.0), ("beta", found.beta, 0.0)):
        data = np.full(channels, default, np.float32) if t is None else graph.tensors[t].data
        assert data is not None
        whole = np.broadcast_to(data.astype(np.float32).reshape(-1), (channels,)).copy()
        values.append(graph.add_tensor(constant(f"{last.name}_{what}", whole)))
    attributes = Attributes({"epsilon": found.epsilon})
    return replace(last, operator="layer_normalization", inputs=(found.x, *values), attributes=attributes)


@dataclass
class _Normalization:
    """The parts of one normalisation.

    Attributes:
        x: that is normalised.
        mean: of its rows.
        epsilon: added to the variance.
        parts: nodes that go.
        gamma: constant, or None for 1.
        beta: constant, or None for 0.
        last: the node that writes the result.
    """

    x: int
    mean: int
    epsilon: float
    parts: set[int]
    gamma: int | None = None
    beta: int | None = None
    last: int = ABSENT

    @staticmethod
    def of(search: _Search, root: int) -> _Normalization | None:
        """Return the normalisation whose inverse root is a node; None where it is none."""
        graph = search.graph
        total = search.writer(search.input(root), "add")
        if total is None or form_of(graph, graph.nodes[total]) is not Form.SCALAR:
            return None
        variance = search.writer(search.input(total), "mean")
        square = None if variance is None else search.writer(search.input(variance), "squared_difference")
        if variance is None or square is None:
            return None
        x, m = graph.nodes[square].inputs
        mean = search.writer(m, "mean", alone=False)
        rank = len(graph.tensors[x].shape)
        if mean is None or search.input(mean) != x:
            return None
        if any(reduced_axes(graph, graph.nodes[n]) != (rank - 1,) for n in (mean, variance)):
            return None
        epsilon = scalar_of(graph, graph.nodes[total])
        found = _Normalization(x, m, epsilon, {root, total, variance, square, mean})
        inverse = graph.nodes[root].outputs[0]
        if not (found.by_scale(search, inverse) or found.by_difference(search, inverse)):
            return None
        return found if found.is_closed(search) else None

    def is_closed(self, search: _Search) -> bool:
        """Whether nobody else reads what is inside."""
        graph = search.graph
        inside = {t for n in self.parts - {self.last} for t in graph.nodes[n].outputs}
        return all(r in self.parts for t in inside for r in search.readers(t)) and not inside & set(graph.outputs)

    def take_constant(self, search: _Search, t: int, operator: str) -> tuple[int, int, int] | None:
        """Return node, its result and its constant, where one node of an operator alone reads t beside a constant.

        A difference takes t off the constant.
        """
        readers = search.readers(t)
        if len(readers) != 1 or search.graph.nodes[readers[0]].operator != operator:
            return None
        other = search.other(search.graph.nodes[readers[0]], t)
        if other is None or not search.graph.tensors[other].is_constant:
            return None
        if operator == "sub" and search.input(readers[0]) == t:
            return None
        return readers[0], search.graph.nodes[readers[0]].outputs[0], other

    def by_difference(self, search: _Search, inverse: int) -> bool:
        """(x - m) * inverse, then gamma and beta."""
        readers = search.readers(inverse)
        if len(readers) != 1 or search.graph.nodes[readers[0]].operator != "mul":
            return False
        difference = search.other(search.graph.nodes[readers[0]], inverse)
        sub = None if difference is None else search.writer(difference, "sub")
        if sub is None or search.graph.nodes[sub].inputs != (self.x, self.mean):
            return False
        self.parts.update((readers[0], sub))
        self.last, t = readers[0], search.graph.nodes[readers[0]].outputs[0]
        for operator, what in (("mul", "gamma"), ("add", "beta")):
            taken = self.take_constant(search, t, operator)
            if taken is not None and t not in search.graph.outputs:
                self.last, t, value = taken
                self.parts.add(self.last)
                setattr(self, what, value)
        return True

    def by_scale(self, search: _Search, inverse: int) -> bool:
        """X * s + (beta - m * s) or x * s + (beta + -m * s), s = inverse * gamma."""
        graph, s = search.graph, inverse
        taken = self.take_constant(search, s, "mul")
        if taken is not None:
            node, s, self.gamma = taken
            self.parts.add(node)
        products = {search.other(graph.nodes[n], s): n for n in search.readers(s) if graph.nodes[n].operator == "mul"}
        negated = next((n for n in search.readers(self.mean) if graph.nodes[n].operator == "neg"), None)
        factor = self.mean if negated is None else graph.nodes[negated].outputs[0]
        if len(products) != 2 or set(products) != {self.x, factor}:
            return False
        self.parts.update((*products.values(), *(() if negated is None else (negated,))))
        scaled, shift = (graph.nodes[products[t]].outputs[0] for t in (self.x, factor))
        taken = self.take_constant(search, shift, "add" if negated is not None else "sub")
        if taken is not None:
            node, shift, self.beta = taken
            self.parts.add(node)
        last = set(search.readers(scaled)) & set(search.readers(shift))
        if len(last) != 1 or graph.nodes[next(iter(last))].operator != "add":
            return False
        self.last = last.pop()
        self.parts.add(self.last)
        # without a negation m * s must have been subtracted from beta
        return fused_activation(graph.nodes[self.last]) == "none" and (negated is not None or taken is not None)
