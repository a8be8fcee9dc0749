"""A graph of Compass's layers under construction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tflq.graph import Array, Attributes, DType, Graph, Node, Range, Tensor
from tflq.graph.attributes import Attribute
from tflq.quoting import compass_word

FUSED = {"none": "NONE", "relu": "RELU", "relu6": "RELU6"}

_NARROWED = {DType.BOOL: DType.UINT8, DType.INT64: DType.INT32}


def as_written(value: float) -> float:
    """Return a number as the Parser leaves it, which writes six decimals."""
    return float(f"{value:f}")


def fused_of(node: Node) -> str:
    """Return Compass's name of a node's fused activation."""
    return FUSED[node.attributes.text("fused_activation_function", "none")]


@dataclass
class Translation:
    """A graph of Compass's layers under construction.

    Attributes:
        source: float TFLite graph.
        graph: what is being built.
        places: tensor of the source -> tensor of the graph.
        names: of the layers so far.
        constants: constant of the source and shape -> what its Constant layer writes.
        aliases: tensor of the source -> the one that names its layer.
        settings: layer -> name of the node of the source whose settings it has.
    """

    source: Graph
    graph: Graph
    places: dict[int, int] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    constants: dict[tuple[int, tuple[int, ...]], int] = field(default_factory=dict)
    aliases: dict[int, int] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)

    def sources(self) -> dict[str, int]:
        """Return tensor name of the graph -> tensor of the source."""
        return {self.graph.tensors[new].name: old for old, new in self.places.items()}

    def layer_name(self, wanted: str) -> str:
        """Return a name that no layer has."""
        name = base = compass_word(wanted) or "layer"
        number = 1
        while name in self.names:
            name = f"{base}_{number}"
            number += 1
        self.names.add(name)
        return name

    def rename(self, t: int, other: int) -> None:
        """Let tensor `other` of the source name the layer that writes tensor `t`."""
        self.aliases[t] = other

    def name_of(self, t: int) -> str:
        """Return the name of the layer that writes a tensor of the source."""
        return self.source.tensors[self.aliases.get(t, t)].name

    def top(self, t: int) -> Tensor:
        """Return a tensor of the source as a layer writes it: truth values are uint8, integers have 32 bits at most."""
        old = self.source.tensors[t]
        return replace(old, dtype=_NARROWED.get(old.dtype, old.dtype), extra=None)

    def input(self, t: int) -> str:
        """Add an input of the graph and return the name of its layer."""
        layer = self.layer_name(self.source.tensors[t].name)
        self.places[t] = self.graph.add_tensor(replace(self.top(t), name=f"{layer}_0"))
        return layer

    def constant(self, layer: str, key: str, data: Array) -> int:
        """Add a constant of a layer: float32, or the integers that it holds."""
        value = np.array(data, data.dtype if np.issubdtype(data.dtype, np.integer) else np.float32, order="C")
        value.setflags(write=False)
        return self.graph.add_tensor(Tensor(f"{layer}/{key}", data.shape, DType.of(value.dtype), data=value))

    def layer_of_constant(self, name: str, data: Array) -> int:
        """Add a Constant layer and return what it writes."""
        layer = self.layer_name(name)
        weights = self.constant(layer, "weights", data)
        top = self.graph.add_tensor(replace(self.graph.tensors[weights], name=f"{layer}_0", data=None))
        self.graph.nodes.append(Node("constant", (weights,), (top,), name=layer))
        return top

    def operand(self, t: int, shape: tuple[int, ...] | None = None, reader: str = "") -> int:
        """Return the tensor of the graph for one of the source; a constant gets its layer.

        Args:
            t: of the source.
            shape: to which a constant is repeated.
            reader: name of the layer that reads it, which then names that of the constant.
        """
        tensor = self.source.tensors[t]
        if tensor.data is None:
            return self.places[t]
        wanted = tensor.shape if shape is None else shape
        if (t, wanted) not in self.constants:
            name = tensor.name if wanted == tensor.shape else f"{reader}_pre_tile"
            self.constants[t, wanted] = self.layer_of_constant(name, np.broadcast_to(tensor.data, wanted))
        return self.constants[t, wanted]

    def layer(
        self,
        node: Node,
        name: str,
        operator: str,
        inputs: Sequence[int],
        tops: Sequence[Tensor],
        keys: Mapping[str, Attribute] | None = None,
        constants: Mapping[str, Array] | None = None,
    ) -> tuple[int, ...]:
        """Add a layer and return what it writes.

        Args:
            node: of the source, whose settings the layer has.
            name: that it wants.
            operator: Compass's.
            inputs: tensors of the graph.
            tops: types, shapes and ranges of the outputs.
            keys: of the layer.
            constants: of the layer, by key.
        """
        layer = self.layer_name(name)
        self.settings[layer] = node.name
        own = tuple(self.constant(layer, k, v) for k, v in (constants or {}).items())
        written = tuple(self.graph.add_tensor(replace(t, name=f"{layer}_{i}")) for i, t in enumerate(tops))
        self.graph.nodes.append(Node(operator, (*inputs, *own), written, Attributes(keys or {}), layer))
        return written

    def add(
        self,
        node: Node,
        operator: str,
        inputs: Sequence[int],
        outputs: Sequence[int],
        keys: Mapping[str, Attribute] | None = None,
        constants: Mapping[str, Array] | None = None,
        suffix: str = "",
    ) -> None:
        """Add a layer that writes tensors of the source, the first of which and `suffix` name it; else as `layer`."""
        name = self.name_of(outputs[0]) + suffix
        written = self.layer(node, name, operator, inputs, [self.top(t) for t in outputs], keys, constants)
        self.places.update(zip(outputs, written, strict=True))

    def add_between(
        self,
        node: Node,
        operator: str,
        inputs: Sequence[int],
        shape: tuple[int, ...],
        like: int,
        keys: Mapping[str, Attribute] | None = None,
        suffix: str = "",
    ) -> int:
        """Add a layer whose output the source has not: as tensor `like` of the source, in another shape."""
        top = replace(self.top(like), shape=shape, data=None)
        return self.layer(node, self.name_of(like) + suffix, operator, inputs, (top,), keys)[0]

    def reshape(self, node: Node, source: int, t: int, suffix: str = "") -> None:
        """Add the Reshape that writes a tensor of the source."""
        self.add(node, "reshape", (source,), (t,), {"shape": self.shape(t)}, suffix=suffix)

    def add_internal(self, limits: Mapping[str, tuple[float, float] | None]) -> None:
        """Give the last layer what it computes within itself, with ranges where they are known."""
        node = self.graph.nodes[-1]
        internal = []
        for name, pair in limits.items():
            known = None if pair is None else Range(*(np.array([v], np.float32) for v in pair))
            internal.append(self.graph.add_tensor(Tensor(f"{node.name}/{name}", (), DType.FLOAT32, range=known)))
        self.graph.nodes[-1] = replace(node, intermediates=tuple(internal))

    def repeated(self, node: Node, outputs: Sequence[int]) -> list[int]:
        """Return the operands of a node, constants repeated to the shape of its output, `outputs[0]`."""
        name, shape = self.name_of(outputs[0]), self.shape(outputs[0])
        return [self.operand(t, shape, name) for t in node.inputs]

    def numbers(self, node: Node, position: int) -> tuple[int, ...]:
        """Return a constant operand of integers, flat."""
        data = self.source.tensors[node.inputs[position]].data
        return tuple(int(v) for v in np.asarray(data).reshape(-1))

    def shape(self, t: int) -> tuple[int, ...]:
        """Return the shape of a tensor of the source."""
        return self.source.tensors[t].shape

    def limits(self, t: int) -> tuple[float, float] | None:
        """Return the smallest and the largest value of a tensor of the source; None where nothing says."""
        tensor = self.source.tensors[t]
        if tensor.data is not None:
            return float(np.min(tensor.data)), float(np.max(tensor.data))
        return None if tensor.range is None else (float(tensor.range.minimum.min()), float(tensor.range.maximum.max()))

    def append(
        self,
        node: Node,
        operator: str,
        constants: Mapping[str, Array],
        attributes: Attributes | None = None,
        reads: int = 1,
    ) -> None:
        """Add the layer of a node that reads its first `reads` inputs and writes all its outputs."""
        inputs = [self.operand(t) for t in node.inputs[:reads]]
        self.add(node, operator, inputs, node.outputs, attributes, constants)
