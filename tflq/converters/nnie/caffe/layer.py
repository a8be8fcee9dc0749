"""One layer of a Caffe network: what a builder sees of the graph, and its text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Union

import numpy as np
from numpy.typing import NDArray

from tflq.converters.passes.patterns import fused_activation
from tflq.errors import UnsupportedError
from tflq.graph import Array, Graph, Node
from tflq.quoting import prototxt_string

Parameter = Union[int, float, bool, str, "tuple[int, ...]", "Mapping[str, Parameter]"]
"""A field of the prototxt; text is the name of an enumeration's member, a tuple a repeated field."""


@dataclass(frozen=True, eq=False)
class CaffeLayer:
    """A layer.

    Attributes:
        name: unique.
        type: Caffe's name.
        bottoms: blobs it reads.
        tops: blobs it writes.
        parameters: message -> its fields.
        blobs: weights, then bias, for the .caffemodel.
    """

    name: str
    type: str
    bottoms: tuple[str, ...]
    tops: tuple[str, ...]
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    blobs: tuple[NDArray[np.float32], ...] = ()


@dataclass(frozen=True)
class Site:
    """Where a node stands.

    Attributes:
        graph: of real numbers.
        node: the node.
        name: of the layer to make.
        bottoms: blobs of its computed inputs, in order.
        sources: for each of them the tensor that the blob holds: in front of a reshape that only flattens.
        top: blob to write.
    """

    graph: Graph
    node: Node
    name: str
    bottoms: tuple[str, ...]
    sources: tuple[int, ...]
    top: str

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the first input's blob, as the graph has it (channels last)."""
        return self.graph.tensors[self.sources[0]].shape

    def image(self) -> tuple[int, int, int]:
        """Return height, width and channels of the first input.

        Raises:
            UnsupportedError: it is no image.
        """
        if len(self.shape) != 4:
            raise UnsupportedError(f"an input of shape {self.shape}; Caffe's layer takes an image of 4 axes")
        return self.shape[1], self.shape[2], self.shape[3]

    def constant(self, position: int) -> Array | None:
        """Return the value of an operand; None where it is absent.

        Raises:
            UnsupportedError: it is computed at run time.
        """
        if position >= len(self.node.inputs) or self.node.inputs[position] < 0:
            return None
        tensor = self.graph.tensors[self.node.inputs[position]]
        if tensor.data is None:
            raise UnsupportedError(f"operand '{tensor.name}' is computed at run time; Caffe takes a constant there")
        return tensor.data

    def layer(
        self, kind: str, parameters: Mapping[str, Parameter] | None = None, blobs: tuple[NDArray[np.float32], ...] = ()
    ) -> CaffeLayer:
        """Return a layer from the inputs to the top."""
        return CaffeLayer(self.name, kind, self.bottoms, (self.top,), parameters or {}, blobs)

    def rectifier(self) -> list[CaffeLayer]:
        """Return the ReLU of a fused activation, in place; nothing where there is none."""
        if fused_activation(self.node) not in ("relu", "relu6"):
            return []
        return [CaffeLayer(f"{self.name}_relu", "ReLU", (self.top,), (self.top,))]


def prototxt(name: str, layers: Sequence[CaffeLayer]) -> str:
    """Return the .prototxt."""
    lines = [f"name: {prototxt_string(name)}"]
    for layer in layers:
        lines += ["layer {", f"  name: {prototxt_string(layer.name)}", f'  type: "{layer.type}"']
        lines += [f"  bottom: {prototxt_string(blob)}" for blob in layer.bottoms]
        lines += [f"  top: {prototxt_string(blob)}" for blob in layer.tops]
        lines += _fields(layer.parameters, "  ")
        lines.append("}")
    return "\n".join(lines) + "\n"


def _fields(fields: Mapping[str, Parameter], indent: str) -> Iterator[str]:
    for key, value in fields.items():
        if isinstance(value, Mapping):
            yield f"{indent}{key} {{"
            yield from _fields(value, indent + "  ")
            yield f"{indent}}}"
        elif isinstance(value, tuple):
            yield from (f"{indent}{key}: {item}" for item in value)
        else:
            yield f"{indent}{key}: {str(value).lower() if isinstance(value, bool) else value}"
