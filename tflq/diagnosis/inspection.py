"""What a model holds, as plain data: operators, tensors, quantization, sizes, and what cannot be run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tflq.converters.settings import parse_settings
from tflq.converters.settled import settled_graph
from tflq.converters.targets import Target, find_target, problems_of, target_names
from tflq.errors import TflqError
from tflq.graph import ABSENT, Affine, Blockwise, Graph, Model, Quantization, Tensor
from tflq.graph.arena import Arena, arena_of, macs, precision, tensor_bytes
from tflq.interpreter.execution.control import CONTROL
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
        precision: of the multiplications: "int8 x int4", input times weights; empty without MACs.
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
    precision: str
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
        arena: the activations over the order of execution.
    """

    name: str
    operators: tuple[OperatorFacts, ...]
    tensors: Sequence[Tensor]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    constant_bytes: int
    arena: Arena

    @property
    def macs(self) -> int:
        """Multiply-accumulates of all operators for one sample."""
        return sum(operator.macs for operator in self.operators)

    @property
    def macs_by_precision(self) -> dict[str, int]:
        """Multiply-accumulates by what is multiplied, the most first."""
        found: dict[str, int] = {}
        for operator in self.operators:
            if operator.macs:
                found[operator.precision] = found.get(operator.precision, 0) + operator.macs
        return dict(sorted(found.items(), key=lambda item: -item[1]))

    @property
    def missing(self) -> dict[str, list[int]]:
        """Operators without a kernel, with the numbers of their nodes."""
        found: dict[str, list[int]] = {}
        for operator in self.operators:
            if not operator.has_kernel:
                found.setdefault(operator.operator, []).append(operator.index)
        return found


@dataclass(frozen=True)
class Refusals:
    """What one target says of a graph.

    Attributes:
        target: its name.
        reasons: one line for each operator that it cannot take: which, why, and the way out.
    """

    target: str
    reasons: tuple[str, ...]


def refusals(graph: Graph) -> tuple[Refusals, ...]:
    """Ask every target, with its default settings, which operators it would refuse."""
    return tuple(Refusals(name, _refused(find_target(name), graph)) for name in target_names())


def _refused(target: Target, graph: Graph) -> tuple[str, ...]:
    try:
        return problems_of(target, settled_graph(graph), parse_settings(target.settings, (), ()))
    except TflqError as error:
        return (str(error),)


def inspect(model: Model) -> tuple[GraphFacts, ...]:
    """Return the facts of each graph of a model, the main one first."""
    return tuple(_graph_facts(graph) for graph in model.graphs)


def describe_quantization(quantization: Quantization | None) -> str:
    """Write a quantization in one short phrase; empty where there is none."""
    if quantization is None:
        return ""
    if isinstance(quantization, Affine):
        scales = quantization.scale
        if not quantization.is_per_axis:
            return f"scale {scales[0]:.6g}, zero point {quantization.zero_point[0]}"
        zero_points = quantization.zero_point
        zeros = "zero point 0" if not zero_points.any() else f"zero points {zero_points.min()}..{zero_points.max()}"
        return f"{scales.size} scales {scales.min():.6g}..{scales.max():.6g} along axis {quantization.axis}, {zeros}"
    if isinstance(quantization, Blockwise):
        return f"scales in tensor {quantization.scales}, one for each block of {quantization.block_size}"
    return type(quantization).__name__.lower()


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
                macs=(count := macs(graph, index)),
                precision=precision(graph, index) if count else "",
                has_kernel=_can_run(graph, index),
            )
        )
    constant_bytes = sum(tensor_bytes(t) for t in graph.tensors if t.is_constant)
    return GraphFacts(
        graph.name, tuple(operators), graph.tensors, graph.inputs, graph.outputs, constant_bytes, arena_of(graph)
    )


def _can_run(graph: Graph, index: int) -> bool:
    node = graph.nodes[index]
    name = arithmetic_of(node, graph.operands(index), "tflite")
    return node.operator in CONTROL or has_kernel(name, kernel_name(node))
