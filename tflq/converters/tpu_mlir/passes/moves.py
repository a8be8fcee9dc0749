"""What TPU-MLIR's one layer in front of an operand moves (docs/tpu_mlir.md, 3)."""

from __future__ import annotations

from collections import Counter

from tflq.converters.onnx import OnnxGraph, OnnxNode
from tflq.converters.passes.patterns import shape_first
from tflq.graph import Graph

Moves = dict[int, tuple[int, ...]]


def moves_of(network: Graph, written: OnnxGraph) -> Moves:
    """Return tensor -> what shares its values up to and with the input of the one layer that moves it to its reader.

    TPU-MLIR makes one layer of reshapes in a row, of transpositions in a row, and of an image (or rows) whose channels
    are brought to the back, reshaped there without touching them, and brought to the front again: that is a reshape
    of its own. What is read elsewhere on the way stays a layer of its own.

    Args:
        network: the float graph.
        written: the ONNX graph that goes with it.
    """
    chains = _Chains(network, written)
    found: Moves = {}
    for node in written.nodes:
        for value in node.inputs if node.op_type not in ("Transpose", "Reshape") else ():
            if moved := chains.one_layer(value):
                found.setdefault(chains.nearest(value), moved)
    return found


def reshaped_alone(network: Graph, written: OnnxGraph) -> dict[int, int]:
    """Return what a reshape writes that leaves the channels -> what it reads: nothing is permuted around it.

    TPU-MLIR moves reals or quantized values there as they are, in a layer called `<name of what it reads>_r_Reshape`.

    Args:
        network: the float graph.
        written: the ONNX graph that goes with it.
    """
    chains = _Chains(network, written)
    found = (chains.around(node.outputs[0]) for node in written.nodes)
    return dict(pair for pair in found if pair is not None)


class _Chains:
    """The ways back from a value through what moves it."""

    def __init__(self, network: Graph, written: OnnxGraph) -> None:
        self._network, self._written = network, written
        self._writers = written.producers
        self._own = {value: t for t, value in written.values.items()}
        self._reads = Counter(v for node in written.nodes for v in node.inputs)
        self._reads.update(value.name for value in written.outputs)

    def nearest(self, value: str) -> int:
        """Return the tensor of the model that a value holds, as it is or moved."""
        while value not in self._own:
            value = self._writers[value].inputs[0]
        return self._own[value]

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
        t, shape = self._own[source], self._written.constants[self._writers[shaped].inputs[1]]
        old = self._network.tensors[t].shape
        old = shape_first(old) if t in self._written.first else old
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
