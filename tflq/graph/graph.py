"""The neutral graph: tensors and nodes in order of execution. It knows no file format and runs nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from tflq.arrays import Array, is_same
from tflq.errors import GraphError, RuntimeOperandError
from tflq.graph.attributes import Attributes
from tflq.graph.dtypes import DType
from tflq.graph.printing import format_graph
from tflq.graph.quantization import Affine, Blockwise, Quantization, Range

ABSENT = -1
"""Index of an optional operand that is not given."""


@dataclass(frozen=True, eq=False)
class Tensor:
    """One tensor.

    Attributes:
        name: as in the file; names need not be unique.
        shape: the model's own shape, its batch axis included.
        dtype: element type.
        quantization: how the integers stand for real numbers; None for plain values.
        range: the real range that the file or a calibration states, kept beside the quantization.
        data: the value of a constant, read-only, in `dtype.storage`; None for what is computed.
        shape_signature: shape with -1 where the model leaves a size open; None where it leaves none.
        is_variable: whether it keeps its value from one invocation to the next.
        has_rank: the file's own mark that an empty shape means a scalar.
        extra: what only the file format knows (sparsity, variant types), kept for writing.
    """

    name: str
    shape: tuple[int, ...]
    dtype: DType
    quantization: Quantization | None = None
    range: Range | None = None
    data: Array | None = None
    shape_signature: tuple[int, ...] | None = None
    is_variable: bool = False
    has_rank: bool = False
    extra: object | None = None

    @property
    def quantisation(self) -> Quantization | None:
        """Old spelling of `quantization`, until release 0.3."""
        return self.quantization

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tensor) and is_same(tuple(vars(self).values()), tuple(vars(other).values()))

    def __hash__(self) -> int:
        return hash((self.name, self.shape, self.dtype))

    @property
    def is_constant(self) -> bool:
        """Whether the value is known before the graph runs."""
        return self.data is not None

    @property
    def size(self) -> int:
        """Number of elements of one sample."""
        return prod(self.shape)

    @property
    def affine(self) -> Affine:
        """The affine quantization.

        Raises:
            GraphError: the tensor has none.
        """
        if not isinstance(self.quantization, Affine):
            raise GraphError(f"tensor '{self.name}' ({self.dtype.value}) has no scale and zero point")
        return self.quantization


@dataclass(frozen=True, eq=False)
class Node:
    """One operation.

    Attributes:
        operator: TFLite's builtin name in snake case, or a target's own.
        inputs: tensor indices; ABSENT for an optional operand that is not given.
        outputs: tensor indices.
        attributes: the operator's options.
        name: unique within its graph: <TFLITE_OP>_<subgraph>_<operator index> as read from a file.
        version: the version of the operator that the file asks for.
        custom_code: the name of a custom operator.
        custom_options: its options, as bytes.
        arithmetic: whose kernels run it; None in a graph that is not lowered.
        params: what `lower` decided: a frozen dataclass of that arithmetic and operator.
        extra: what only the file format knows (mutating inputs), kept for writing.
        intermediates: tensors whose quantization the kernel uses within itself (LSTM); None where the file has no list.
    """

    operator: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    attributes: Attributes = field(default_factory=Attributes)
    name: str = ""
    version: int = 1
    custom_code: str | None = None
    custom_options: bytes | None = None
    arithmetic: str | None = None
    params: object | None = None
    extra: object | None = None
    intermediates: tuple[int, ...] | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Node) and is_same(tuple(vars(self).values()), tuple(vars(other).values()))

    def __hash__(self) -> int:
        return hash((self.operator, self.inputs, self.outputs, self.name))


@dataclass
class Graph:
    """Tensors and nodes; nodes stand in order of execution. Passes take a graph and return another one.

    Attributes:
        tensors: indexed by the nodes.
        nodes: in order of execution.
        inputs: indices of the graph's inputs.
        outputs: indices of the graph's outputs.
        name: as in the file.
        extra: what only the file format knows.
    """

    tensors: list[Tensor]
    nodes: list[Node]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    name: str = ""
    extra: object | None = None

    def __str__(self) -> str:
        return format_graph(self)

    def copy(self) -> Graph:
        """Return a graph whose lists can change without touching this one; tensors and nodes are immutable."""
        return replace(self, tensors=list(self.tensors), nodes=list(self.nodes))

    def operands(self, index: int) -> Operands:
        """Return the tensors of node `index`."""
        return Operands.from_node(self.tensors, self.nodes[index], self.where(index))

    def where(self, index: int) -> str:
        """Name node `index` for a message: its number, operator and name."""
        node = self.nodes[index]
        return f"operator {index} ({node.operator} '{node.name}')"

    @property
    def variables(self) -> tuple[int, ...]:
        """Tensors that keep their values from one invocation to the next."""
        return tuple(t for t, tensor in enumerate(self.tensors) if tensor.is_variable)

    def producers(self) -> dict[int, int]:
        """Map each computed tensor to the node that writes it."""
        return {t: i for i, node in enumerate(self.nodes) for t in node.outputs}

    def consumers(self) -> dict[int, list[int]]:
        """Map each tensor to the nodes that read it, in order; a node that reads it twice appears twice."""
        readers: dict[int, list[int]] = {}
        for i, node in enumerate(self.nodes):
            for t in node.inputs:
                if t != ABSENT:
                    readers.setdefault(t, []).append(i)
        return readers

    def add_tensor(self, tensor: Tensor) -> int:
        """Append a tensor and return its index."""
        self.tensors.append(tensor)
        return len(self.tensors) - 1


@dataclass(frozen=True)
class Operands:
    """The tensors of one node and the words that name it in messages.

    Attributes:
        inputs: None for an optional operand that is not given.
        outputs: the tensors that the node writes.
        where: "operator 3 (conv_2d 'CONV_2D_0_3')".
        intermediates: tensors whose quantization the kernel uses within itself.
        block_scales: for each input, the tensor of its scales where it is quantized in blocks, else None.
    """

    inputs: tuple[Tensor | None, ...]
    outputs: tuple[Tensor, ...]
    where: str = ""
    intermediates: tuple[Tensor | None, ...] = ()
    block_scales: tuple[Tensor | None, ...] = ()

    @classmethod
    def from_node(cls, tensors: Sequence[Tensor], node: Node, where: str = "") -> Operands:
        """Return the operands of a node that indexes `tensors`."""

        def list_tensors(indices: Iterable[int]) -> tuple[Tensor | None, ...]:
            return tuple(None if t == ABSENT else tensors[t] for t in indices)

        inputs = list_tensors(node.inputs)
        outputs, scales = tuple(tensors[t] for t in node.outputs), tuple(_block_scales(tensors, x) for x in inputs)
        return cls(inputs, outputs, where, list_tensors(node.intermediates or ()), scales)

    def input(self, position: int) -> Tensor:
        """Return an operand that must be there.

        Raises:
            GraphError: it is absent.
        """
        tensor = self.optional(position)
        if tensor is None:
            raise GraphError(f"{self.where}: input {position} is missing, the operator needs it")
        return tensor

    def optional(self, position: int) -> Tensor | None:
        """Return an operand, or None where it is absent."""
        return self.inputs[position] if position < len(self.inputs) else None

    def output(self, position: int = 0) -> Tensor:
        """Return an output.

        Raises:
            GraphError: the node has too few.
        """
        if position >= len(self.outputs):
            raise GraphError(f"{self.where}: output {position} is missing, the operator writes it")
        return self.outputs[position]

    def constant(self, position: int) -> Array:
        """Return the value of an operand that must be constant.

        Raises:
            GraphError: it is absent.
            RuntimeOperandError: it is computed at run time.
        """
        tensor = self.input(position)
        if tensor.data is None:
            raise RuntimeOperandError(
                f"{self.where}: input {position} ('{tensor.name}') is computed at run time, a constant is needed",
                position,
            )
        return tensor.data


def _block_scales(tensors: Sequence[Tensor], tensor: Tensor | None) -> Tensor | None:
    blocks = None if tensor is None else tensor.quantization
    return tensors[blocks.scales] if isinstance(blocks, Blockwise) and 0 <= blocks.scales < len(tensors) else None


_MOST_BYTES = (1 << 63) - 1


def validate(graph: Graph, where: str = "graph") -> None:
    """Check indices, single assignment, order of execution, shapes, and that quantizations fit them.

    Raises:
        GraphError: names the first node or tensor that does not fit.
    """
    count = len(graph.tensors)
    for role, indices in (("input", graph.inputs), ("output", graph.outputs)):
        for t in indices:
            if not 0 <= t < count:
                raise GraphError(f"{where}: {role} {t} is out of range; {_tensors(graph)}")
    for i, tensor in enumerate(graph.tensors):
        _check_tensor(tensor, count, f"{where}: tensor {i} '{tensor.name}'")
    for t in graph.inputs:
        if graph.tensors[t].is_constant:
            raise GraphError(f"{where}: input {t} '{graph.tensors[t].name}' is a constant; inputs have no value")
    _check_nodes(graph, where)


def _check_tensor(tensor: Tensor, count: int, where: str) -> None:
    if any(size < 0 for size in tensor.shape):
        raise GraphError(f"{where}: found shape {tensor.shape}; sizes are 0 or more")
    if prod(tensor.shape) * max(1, tensor.dtype.storage.itemsize) > _MOST_BYTES:
        raise GraphError(f"{where}: found shape {tensor.shape}; a tensor has less than 2^63 bytes")
    if tensor.data is not None and tensor.data.shape != tensor.shape:
        raise GraphError(f"{where}: found shape {tensor.shape}, but its data has {tensor.data.shape}")
    if isinstance(tensor.quantization, Affine):
        _check_affine(tensor.quantization, tensor.shape, where)
    if isinstance(tensor.quantization, Blockwise):
        _check_blocks(tensor.quantization, count, where)


def _check_affine(affine: Affine, shape: tuple[int, ...], where: str) -> None:
    scales, zero_points, axis = affine.scale.size, affine.zero_point.size, affine.axis
    if scales < 1 or zero_points not in (1, scales):
        raise GraphError(f"{where}: {scales} scales and {zero_points} zero points; as many of each, at least 1")
    if scales > 1 and (axis is None or not 0 <= axis < len(shape) or shape[axis] != scales):
        raise GraphError(f"{where}: {scales} scales along axis {axis} do not fit a tensor of shape {shape}")


def _check_blocks(blocks: Blockwise, count: int, where: str) -> None:
    for role, t, lowest in (("scales", blocks.scales, 0), ("zero points", blocks.zero_points, ABSENT)):
        if not lowest <= t < count:
            raise GraphError(f"{where}: its {role} are tensor {t}; allowed are {lowest}..{count - 1}")
    if blocks.block_size < 1:
        raise GraphError(f"{where}: found blocks of {blocks.block_size} elements; at least 1 is allowed")


def find_workspaces(graph: Graph) -> frozenset[int]:
    """Return the tensors that only custom operators read and no operator writes, such as the scratch tensor of Vela.

    The runtime reserves their memory; a graph that reads one cannot run without the device.
    """
    known = {i for i, t in enumerate(graph.tensors) if t.is_constant or t.is_variable}
    known.update(graph.inputs, *(node.outputs for node in graph.nodes))
    plain = {t for node in graph.nodes if node.custom_code is None for t in node.inputs}
    custom = {t for node in graph.nodes if node.custom_code is not None for t in node.inputs}
    return frozenset(custom - plain - known - {ABSENT})


def _check_nodes(graph: Graph, where: str) -> None:
    known = {i for i, t in enumerate(graph.tensors) if t.is_constant or t.is_variable} | set(graph.inputs)
    workspaces = find_workspaces(graph)
    for i, node in enumerate(graph.nodes):
        _check_indices(graph, i, where)
        for t in node.inputs:
            if t != ABSENT and t not in known and t not in workspaces:
                raise GraphError(
                    f"{where}: {graph.where(i)} reads tensor {t} '{graph.tensors[t].name}', which is neither a "
                    f"constant nor an input nor written by an earlier operator"
                )
        for t in node.outputs:
            _check_written(graph, i, t, known, where)
            known.add(t)
    missing = [t for t in graph.outputs if t not in known]
    if missing:
        name = graph.tensors[missing[0]].name
        raise GraphError(f"{where}: output tensor {missing[0]} '{name}' is written by no operator")


def _check_written(graph: Graph, i: int, t: int, known: set[int], where: str) -> None:
    """Check that node `i` may write tensor `t`: one without a value, or a variable that it does not read.

    Source: TFLite core/subgraph.cc, CheckInputAndOutputForOverlap, which refuses a variable that is input and output.
    """
    tensor = graph.tensors[t]
    if tensor.is_variable and t in graph.nodes[i].inputs:
        raise GraphError(f"{where}: {graph.where(i)} reads and writes tensor {t} '{tensor.name}'; use two operators")
    if not tensor.is_variable and (t in known or t in graph.inputs):
        raise GraphError(f"{where}: {graph.where(i)} writes tensor {t} '{tensor.name}', which has a value already")


def _check_indices(graph: Graph, i: int, where: str) -> None:
    node = graph.nodes[i]
    for verb, indices, lowest in (
        ("reads", node.inputs, ABSENT),
        ("writes", node.outputs, 0),
        ("scales by", node.intermediates or (), ABSENT),
    ):
        for t in indices:
            if not lowest <= t < len(graph.tensors):
                raise GraphError(f"{where}: {graph.where(i)} {verb} tensor {t}; {_tensors(graph)}")


def _tensors(graph: Graph) -> str:
    count = len(graph.tensors)
    return f"tensors are 0..{count - 1}" if count else "the graph has no tensors"
