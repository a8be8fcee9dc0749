"""What a model holds, as plain data: operators, tensors, quantisation, sizes, and what cannot be run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tflq.analysis.macs import macs
from tflq.graph import ABSENT, Affine, Blockwise, Graph, Model, Quantisation, Tensor
from tflq.interpreter.control import CONTROL
from tflq.interpreter.registry import arithmetic_of, has_kernel, kernel_name


@dataclass(frozen=True)
class OperatorFacts:
    """One operator of a graph.

    Attributes:
        index: its number.
        operator: its name in snake case, a custom one with its code.
        name: unique within the graph.
        version: as in the file.
        inputs: tensor indices, -1 where absent.
        outputs: tensor indices.
        constant_bytes: size of the constants that no earlier operator has read.
        macs: multiply-accumulates for one sample.
        has_kernel: whether tflq runs it as TFLite does.
    """

    index: int
    operator: str
    name: str
    version: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    constant_bytes: int
    macs: int
    has_kernel: bool


@dataclass(frozen=True)
class GraphFacts:
    """One graph of a model.

    Attributes:
        name: as in the file.
        operators: in order of execution.
        tensors: the graph's own.
        inputs: tensor indices.
        outputs: tensor indices.
        constant_bytes: size of all constants, types below a byte packed.
        peak_activation_bytes: largest sum of tensors that must be there while one operator runs, nothing shared.
    """

    name: str
    operators: tuple[OperatorFacts, ...]
    tensors: Sequence[Tensor]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    constant_bytes: int
    peak_activation_bytes: int

    @property
    def macs(self) -> int:
        """Multiply-accumulates of all operators for one sample."""
        return sum(operator.macs for operator in self.operators)

    @property
    def missing(self) -> dict[str, list[int]]:
        """Operators without a kernel, with the numbers of their nodes."""
        found: dict[str, list[int]] = {}
        for operator in self.operators:
            if not operator.has_kernel:
                found.setdefault(operator.operator, []).append(operator.index)
        return found


def inspect(model: Model) -> tuple[GraphFacts, ...]:
    """Return the facts of each graph of a model, the main one first."""
    return tuple(_graph_facts(graph) for graph in model.graphs)


def tensor_bytes(tensor: Tensor) -> int:
    """Return the size of one sample in bytes, types below a byte packed; strings count their bytes where known."""
    if tensor.dtype.bits == 0:
        return sum(len(text) for text in tensor.data.ravel().tolist()) if tensor.data is not None else 0
    return (tensor.size * tensor.dtype.bits + 7) // 8


def describe_quantisation(quantisation: Quantisation | None) -> str:
    """Write a quantisation in one short phrase; empty where there is none."""
    if quantisation is None:
        return ""
    if isinstance(quantisation, Affine):
        scales = quantisation.scale
        if not quantisation.is_per_axis:
            return f"scale {scales[0]:.6g}, zero point {quantisation.zero_point[0]}"
        zero_points = quantisation.zero_point
        zeros = "zero point 0" if not zero_points.any() else f"zero points {zero_points.min()}..{zero_points.max()}"
        return f"{scales.size} scales {scales.min():.6g}..{scales.max():.6g} along axis {quantisation.axis}, {zeros}"
    if isinstance(quantisation, Blockwise):
        return f"scales in tensor {quantisation.scales}, one for each block of {quantisation.block_size}"
    return type(quantisation).__name__.lower()


def _graph_facts(graph: Graph) -> GraphFacts:
    seen: set[int] = set()
    operators = []
    for index, node in enumerate(graph.nodes):
        constants = {t for t in node.inputs if t != ABSENT and graph.tensors[t].is_constant} - seen
        seen |= constants
        operators.append(
            OperatorFacts(
                index=index,
                operator=f"custom {node.custom_code}" if node.custom_code else node.operator,
                name=node.name,
                version=node.version,
                inputs=node.inputs,
                outputs=node.outputs,
                constant_bytes=sum(tensor_bytes(graph.tensors[t]) for t in constants),
                macs=macs(graph, index),
                has_kernel=_can_run(graph, index),
            )
        )
    constant_bytes = sum(tensor_bytes(t) for t in graph.tensors if t.is_constant)
    return GraphFacts(
        graph.name, tuple(operators), graph.tensors, graph.inputs, graph.outputs, constant_bytes, _peak(graph)
    )


def _can_run(graph: Graph, index: int) -> bool:
    node = graph.nodes[index]
    name = arithmetic_of(node, graph.operands(index), "tflite")
    return node.operator in CONTROL or has_kernel(name, kernel_name(node))


def _peak(graph: Graph) -> int:
    """Walk backwards: a tensor lives from the operator that writes it to the last one that reads it."""
    live = {t for t in graph.outputs if not graph.tensors[t].is_constant}
    peak = sum(tensor_bytes(graph.tensors[t]) for t in live)
    for node in reversed(graph.nodes):
        touched = {t for t in node.inputs + node.outputs if t != ABSENT and not graph.tensors[t].is_constant}
        live |= touched
        peak = max(peak, sum(tensor_bytes(graph.tensors[t]) for t in live))
        live -= set(node.outputs)
    return peak
