"""Contents of a model as plain data: operators, tensors, quantization, sizes, and operators that cannot run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tflq.converters.settings import parse_settings
from tflq.converters.settled import settled_graph
from tflq.converters.targets import Target, find_target, problems_of, target_names
from tflq.errors import TflqError
from tflq.graph import ABSENT, Affine, Blockwise, Graph, Model, Quantization, Tensor
from tflq.graph.arena import Arena, arena_of, macs, precision, tensor_bytes
from tflq.interpreter.execution.control import CONTROL
from tflq.interpreter.execution.settle import settle
from tflq.interpreter.registry import arithmetic_of, has_kernel, kernel_name


@dataclass(frozen=True)
class OperatorFacts:
    """One operator of a graph.

    Attributes:
        index: Number of the operator.
        operator: Operator name in snake case; a custom operator with its code.
        name: unique within the graph.
        version: Operator version in the file.
        inputs: tensor indices, -1 for an absent input.
        outputs: tensor indices.
        constant_bytes: size of the constants that no earlier operator has read.
        macs: multiply-accumulates for one sample.
        precision: Types of the multiplications, input times weights ("int8 x int4"); empty without MACs.
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
        name: Name of the graph in the file.
        operators: Operators in order of execution.
        tensors: the graph's own.
        inputs: tensor indices.
        outputs: tensor indices.
        constant_bytes: size of all constants, types below a byte packed.
        arena: the activations over the order of execution.
        false_shapes: Tensors with a stored size that is not the computed one: name -> (stored shape, computed shape).
    """

    name: str
    operators: tuple[OperatorFacts, ...]
    tensors: Sequence[Tensor]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    constant_bytes: int
    arena: Arena
    false_shapes: Mapping[str, tuple[tuple[int, ...], tuple[int, ...]]] = field(default_factory=dict)

    @property
    def macs(self) -> int:
        """Multiply-accumulates of all operators for one sample."""
        return sum(operator.macs for operator in self.operators)

    @property
    def macs_by_precision(self) -> dict[str, int]:
        """Multiply-accumulates by precision, the largest number first."""
        macs: dict[str, int] = {}
        for operator in self.operators:
            if operator.macs:
                macs[operator.precision] = macs.get(operator.precision, 0) + operator.macs
        return dict(sorted(macs.items(), key=lambda item: -item[1]))

    @property
    def missing(self) -> dict[str, list[int]]:
        """Operators without a kernel, with the numbers of their nodes."""
        missing: dict[str, list[int]] = {}
        for operator in self.operators:
            if not operator.has_kernel:
                missing.setdefault(operator.operator, []).append(operator.index)
        return missing


@dataclass(frozen=True)
class Refusals:
    """Operators of a graph that one target refuses.

    Attributes:
        target: Name of the target.
        reasons: one line for each refused operator: its name, the reason, and the way out.
    """

    target: str
    reasons: tuple[str, ...]


def refusals(graph: Graph) -> tuple[Refusals, ...]:
    """Ask every target, with its default settings, which operators it refuses."""
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
    """Write a quantization in one short phrase; empty if it is None."""
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
    facts = (graph.name, tuple(operators), graph.tensors, graph.inputs, graph.outputs, constant_bytes, arena_of(graph))
    can_run = all(operator.has_kernel for operator in operators)
    return GraphFacts(*facts, find_false_shapes(graph) if can_run else {})


def find_false_shapes(graph: Graph) -> dict[str, tuple[tuple[int, ...], tuple[int, ...]]]:
    """Return tensors with a stored size that is not the computed one; TensorFlow Lite Micro trusts stored sizes.

    Returns:
        Name -> (stored shape, computed shape); empty if shapes cannot be computed.
    """
    try:
        settled = settle(graph)
    except TflqError:
        return {}
    written = {t for node in graph.nodes for t in node.outputs} - settled.open
    pairs = [(graph.tensors[t], settled.graph.tensors[t]) for t in sorted(written)]
    return {stored.name: (stored.shape, true.shape) for stored, true in pairs if stored.size != true.size}


def _can_run(graph: Graph, index: int) -> bool:
    node = graph.nodes[index]
    name = arithmetic_of(node, graph.operands(index), "tflite")
    return node.operator in CONTROL or has_kernel(name, kernel_name(node))
