"""A float network as TPU-MLIR sees it through its ONNX graph: names, permutations, moves.

Source: docs/rules/tpu_mlir.md#ranges-that-are-unified-first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from tflq.converters.onnx import OnnxGraph, OnnxNode
from tflq.converters.passes.patterns import computed_inputs, shape_first
from tflq.converters.tpu_mlir.names import tool_names
from tflq.converters.tpu_mlir.passes.forms import CHANNELS_LAST
from tflq.graph import Graph

Moves = Mapping[int, tuple[int, ...]]
_MOVERS = ("Transpose", "Reshape", "Identity")


@dataclass(frozen=True, eq=False)
class SeenNetwork:
    """A float network, and per tensor the facts of the ONNX graph that TPU-MLIR reads.

    ONNX has Transposes that the model does not have: TPU-MLIR permutes quantized values there.

    Attributes:
        graph: Float network; nodes with images in the model's layout have the attribute CHANNELS_LAST.
        onnx: ONNX graph of the network, the file that TPU-MLIR reads.
        names: Tensor -> TPU-MLIR's name of it.
        operands: (output of a node, operand that is permuted on its way to it) -> TPU-MLIR's name of its value.
        results: Tensors that are permuted downstream of the operator that computes them.
        cores: Tensor that is permuted or reshaped downstream of its operator -> TPU-MLIR's name of its result.
        moves: Tensor -> tensors with the same values, up to the input of the layer that moves them to its consumer.
    """

    graph: Graph
    onnx: OnnxGraph
    names: Mapping[int, str]
    operands: Mapping[tuple[int, int], str]
    results: frozenset[int]
    cores: Mapping[int, str]
    moves: Moves


def see_network(graph: Graph, onnx: OnnxGraph) -> SeenNetwork:
    """Return the network as TPU-MLIR sees it.

    TPU-MLIR makes one layer of reshapes in a row, of transpositions in a row, and of an image (or rows) whose channels
    are moved last, reshaped without a change of channels, and moved back: that is a separate reshape, called
    `<name of its input>_r_Reshape`, without permutations around it. A value with another consumer ends a layer.

    Args:
        graph: Float network.
        onnx: ONNX graph of the network.
    """
    return _Reader(graph, onnx).read()


class _Reader:
    """The ways back from a value of the ONNX graph through the nodes that move it."""

    def __init__(self, graph: Graph, onnx: OnnxGraph) -> None:
        self._graph, self._onnx = graph, onnx
        self._writers, self._named = onnx.producers, tool_names(onnx)
        self._own = {value: t for t, value in onnx.values.items()}
        self._reads = Counter(v for node in onnx.nodes for v in node.inputs)
        self._reads.update(value.name for value in onnx.outputs)

    def read(self) -> SeenNetwork:
        """Return the network with its facts."""
        names = {t: self._named[value] for t, value in self._onnx.values.items() if value in self._named}
        reshaped = dict(pair for node in self._onnx.nodes if (pair := self.around(node.outputs[0])) is not None)
        operands, results, cores = self._permutations()
        operands = {(t, x): name for (t, x), name in operands.items() if not {t, x} & reshaped.keys()}
        names |= {t: f"{names[x]}_r_Reshape" for t, x in reshaped.items()}
        return SeenNetwork(self._marked(), self._onnx, names, operands, frozenset(results), cores, self._moves())

    def _marked(self) -> Graph:
        """Return the graph; a node is marked if its first tensor of 4 axes has channels last in the ONNX graph."""
        result = self._graph.copy()
        for index, node in enumerate(self._graph.nodes):
            tensors = (*(t for _, t in computed_inputs(self._graph, node)), *node.outputs)
            image = next((t for t in tensors if len(self._graph.tensors[t].shape) == 4), None)
            if image is not None and image not in self._onnx.first:
                result.nodes[index] = replace(node, attributes=node.attributes.updated(**{CHANNELS_LAST: True}))
        return result

    def _permutations(self) -> tuple[dict[tuple[int, int], str], set[int], dict[int, str]]:
        """Return operands, results and cores of the network."""
        operands, results, cores = dict[tuple[int, int], str](), set[int](), dict[int, str]()
        ends = {self._origin(value, True)[0] for value in self._own}
        for t, value in self._onnx.values.items():
            core, permuted = self._origin(value, True)
            if core in self._own and core != value:
                operands.update({(t, self._own[core]): self._named[value]} if permuted else {})
                continue
            if core != value and core in self._named:
                cores[t] = self._named[core]
                results.update({t} if permuted else ())
            nodes = [self._writers[core]] if core in self._writers else []
            for node in nodes:
                for x in node.inputs:
                    if x == node.inputs[-1] and self._is_right_transpose(node):
                        continue  # the product transposes it
                    source, turned = self._origin(x, False)
                    operands.update({(t, self._own[source]): self._named[x]} if turned and source in self._own else {})
                    nodes += [self._writers[source]] if source in self._writers and source not in ends else []
        return operands, results, cores

    def _is_right_transpose(self, node: OnnxNode) -> bool:
        """Return True if a Transpose of the last two axes with one reader writes the right operand of a MatMul."""
        writer = self._writer(node.inputs[1], "Transpose") if node.op_type == "MatMul" else None
        order = () if writer is None else _order(writer)
        return bool(order) and order == (*range(len(order) - 2), len(order) - 1, len(order) - 2)

    def _origin(self, value: str, is_first: bool) -> tuple[str, bool]:
        """Return the tensor of the model or operator that a value is moved from, and whether it is permuted."""
        node, permuted = self._writers.get(value), False
        while node is not None and node.op_type in _MOVERS and (is_first or value not in self._own):
            permuted, value, is_first = permuted or node.op_type == "Transpose", node.inputs[0], False
            node = self._writers.get(value)
        return value, permuted

    def _moves(self) -> Moves:
        moves = dict[int, tuple[int, ...]]()
        for node in self._onnx.nodes:
            for value in node.inputs if node.op_type not in ("Transpose", "Reshape") else ():
                if moved := self.one_layer(value):
                    while value not in self._own:
                        value = self._writers[value].inputs[0]
                    moves.setdefault(self._own[value], moved)
        return moves

    def one_layer(self, value: str) -> tuple[int, ...]:
        """Return the tensors of the model in front of a value, up to the input of the layer that moves it."""
        passed = self._reshaped(value) or self._back(value, "Transpose")
        return tuple(self._own[v] for v in passed if v in self._own)

    def around(self, value: str) -> tuple[int, int] | None:
        """Return what a Reshape between two Transposes writes and what the first reads, where the channels stay."""
        passed = self._around(value, is_last=True)
        return (self._own[passed[0]], self._own[passed[-1]]) if passed and passed[0] in self._own else None

    def _back(self, value: str, op_type: str) -> list[str]:
        """Return the values in front of nodes of one kind in a row, each read once."""
        passed = list[str]()
        while (node := self._writer(value, op_type, is_last=not passed)) is not None:
            value = node.inputs[0]
            passed.append(value)
        return passed

    def _writer(self, value: str, op_type: str, is_last: bool = False) -> OnnxNode | None:
        node = self._writers.get(value)
        is_taken = node is not None and node.op_type == op_type and (is_last or self._reads[value] == 1)
        return node if is_taken else None

    def _reshaped(self, value: str) -> list[str]:
        passed = list[str]()
        while True:
            node = self._writer(value, "Reshape", is_last=not passed)
            found = [node.inputs[0]] if node is not None else self._around(value, is_last=not passed)
            if not found:
                return passed
            passed += found
            value = found[-1]

    def _around(self, value: str, is_last: bool) -> list[str]:
        """Return the values in front of a Transpose, Reshape, Transpose that leaves the channels; empty for others."""
        last = self._writer(value, "Transpose", is_last)
        if last is None or not _is_to_second(last):
            return []
        shaped = last.inputs[0]
        inner = self._back(shaped, "Reshape") if self._reads[shaped] == 1 else []
        first = self._writer(inner[-1], "Transpose") if inner else None
        source = "" if first is None else first.inputs[0]
        if first is None or source not in self._own or not _is_to_back(first):
            return []
        t, shape = self._own[source], self._onnx.constants[self._writers[shaped].inputs[1]]
        old = self._graph.tensors[t].shape
        old = shape_first(old) if t in self._onnx.first else old
        return [shaped, *inner, source] if (shape[0], shape[-1]) == old[:2] else []


def _order(node: OnnxNode) -> tuple[int, ...]:
    order = node.attributes["perm"]
    assert isinstance(order, tuple)
    return tuple(int(axis) for axis in order if isinstance(axis, int))


def _is_to_back(node: OnnxNode) -> bool:
    order = _order(node)
    return order == (0, *range(2, len(order)), 1)


def _is_to_second(node: OnnxNode) -> bool:
    order = _order(node)
    return order == (0, len(order) - 1, *range(1, len(order) - 1))
