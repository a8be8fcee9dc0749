"""The neutral graph: tensors and nodes in order of execution. It knows no file format and runs nothing."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import prod

from tflq.arrays import Array
from tflq.errors import GraphError, RuntimeOperandError
from tflq.graph.attributes import Attributes
from tflq.graph.dtypes import DType
from tflq.graph.equality import same
from tflq.graph.quantisation import Affine, Blockwise, Quantisation, Range

ABSENT = -1
"""Index of an optional operand that is not given."""


@dataclass(frozen=True, eq=False)
class Tensor:
    """One tensor.

    Attributes:
        name: as in the file; names need not be unique.
        shape: the model's own shape, its batch axis included.
        dtype: element type.
        quantisation: how the integers stand for real numbers; None for plain values.
        range: the real range that the file or a calibration states, kept beside the quantisation.
        data: the value of a constant, read-only, in `dtype.storage`; None for what is computed.
        shape_signature: shape with -1 where the model leaves a size open; None where it leaves none.
        is_variable: whether it keeps its value from one invocation to the next.
        has_rank: the file's own mark that an empty shape means a scalar.
        extra: what only the file format knows (sparsity, variant types), kept for writing.
    """

    name: str
    shape: tuple[int, ...]
    dtype: DType
    quantisation: Quantisation | None = None
    range: Range | None = None
    data: Array | None = None
    shape_signature: tuple[int, ...] | None = None
    is_variable: bool = False
    has_rank: bool = False
    extra: object | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tensor) and same(tuple(vars(self).values()), tuple(vars(other).values()))

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
        """The affine quantisation.

        Raises:
            GraphError: the tensor has none.
        """
        if not isinstance(self.quantisation, Affine):
            raise GraphError(f"tensor '{self.name}' ({self.dtype.value}) has no scale and zero point")
        return self.quantisation


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
        intermediates: tensors whose quantisation the kernel uses within itself (LSTM); None where the file has no list.
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
        return isinstance(other, Node) and same(tuple(vars(self).values()), tuple(vars(other).values()))

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

    def copy(self) -> Graph:
        """Return a graph whose lists can change without touching this one; tensors and nodes are immutable."""
        return replace(self, tensors=list(self.tensors), nodes=list(self.nodes))

    def operands(self, index: int) -> Operands:
        """Return the tensors of node `index`."""
        node = self.nodes[index]
        return Operands(
            tuple(None if i == ABSENT else self.tensors[i] for i in node.inputs),
            tuple(self.tensors[i] for i in node.outputs),
            self.where(index),
            tuple(None if i == ABSENT else self.tensors[i] for i in node.intermediates or ()),
            tuple(None if i == ABSENT else self._block_scales(i) for i in node.inputs),
        )

    def _block_scales(self, index: int) -> Tensor | None:
        quantisation = self.tensors[index].quantisation
        if not isinstance(quantisation, Blockwise) or not 0 <= quantisation.scales < len(self.tensors):
            return None
        return self.tensors[quantisation.scales]

    def where(self, index: int) -> str:
        """Name node `index` for a message: its number, operator and name."""
        node = self.nodes[index]
        return f"operator {index} ({node.operator} '{node.name}')"

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
        intermediates: tensors whose quantisation the kernel uses within itself.
        block_scales: for each input, the tensor of its scales where it is quantised in blocks, else None.
    """

    inputs: tuple[Tensor | None, ...]
    outputs: tuple[Tensor, ...]
    where: str = ""
    intermediates: tuple[Tensor | None, ...] = ()
    block_scales: tuple[Tensor | None, ...] = ()

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
