"""An ONNX graph as plain data: what the writer decides, before any protobuf is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tflq.graph import Array

OnnxAttribute = int | float | str | tuple[int, ...]

OPSET = 13
IR_VERSION = 8


@dataclass(frozen=True)
class OnnxNode:
    """One node.

    Attributes:
        op_type: ONNX's name of the operator.
        inputs: names of values; empty for an optional one that is not given.
        outputs: names of values.
        attributes: name -> value.
    """

    op_type: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, OnnxAttribute] = field(default_factory=dict)


@dataclass(frozen=True)
class OnnxValue:
    """A graph input or output.

    Attributes:
        name: of the value.
        shape: in ONNX's layout.
        dtype: numpy's name of the element type.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True, eq=False)
class OnnxGraph:
    """Nodes in order of execution, constants, inputs and outputs.

    Attributes:
        name: of the graph.
        nodes: in order of execution.
        constants: name -> value.
        inputs: in the model's order.
        outputs: in the model's order.
        values: tensor of the model -> name of the value that holds it.
        origins: name of a value -> tensor of the model whose numbers it holds, perhaps in another layout.
    """

    name: str
    nodes: tuple[OnnxNode, ...]
    constants: Mapping[str, Array]
    inputs: tuple[OnnxValue, ...]
    outputs: tuple[OnnxValue, ...]
    values: Mapping[int, str]
    origins: Mapping[str, int]

    @property
    def producers(self) -> dict[str, OnnxNode]:
        """Map each value to the node that writes it."""
        return {value: node for node in self.nodes for value in node.outputs}
