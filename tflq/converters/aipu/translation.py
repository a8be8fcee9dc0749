"""Layers of Compass under construction from a TFLite graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tflq.converters.aipu.passes.layers import INPUT, Layers
from tflq.converters.aipu.stated_ranges import inherit
from tflq.graph import ABSENT, Array, Attributes, DType, Graph, Node, Range, Tensor
from tflq.graph.attributes import Attribute
from tflq.quoting import compass_name

_NARROWED = {DType.BOOL: DType.UINT8, DType.INT64: DType.INT32}


@dataclass
class Translation:
    """Layers under construction, one node of a TFLite graph after the other.

    Attributes:
        source: float TFLite graph, activations apart.
        layers: what is being built.
        places: tensor of the source -> value.
        constants: (node of the source, tensor) -> name of the Constant layer that the node would read.
        current: node of the source that is being translated.
    """

    source: Graph
    layers: Layers = field(default_factory=Layers)
    places: dict[int, int] = field(default_factory=dict)
    constants: dict[tuple[int, int], str] = field(default_factory=dict)
    current: int = 0

    def __post_init__(self) -> None:
        """Number what the Parser makes of the file, in its order: inputs from the last on, each node, its constants."""
        births = self.layers.births
        for t in reversed(self.source.inputs):
            births.setdefault(compass_name(self.name_of(t)), len(births))
        seen: dict[str, int] = {}
        for index, node in enumerate(self.source.nodes):
            births.setdefault(compass_name(self.name_of(node.outputs[0])), len(births))
            for t in node.inputs:
                if t == ABSENT or not self.source.tensors[t].is_constant:
                    continue
                name = self.name_of(t)
                count = seen[name] = seen.get(name, -1) + 1
                again = f"{name}_{t}_{count}" if count else name
                self.constants[index, t] = compass_name(again)
                births.setdefault(self.constants[index, t], len(births))

    def sources(self, count: int) -> dict[int, int]:
        """Return value -> tensor of the source, of its first `count` ones."""
        found: dict[int, int] = {}
        for old, new in self.places.items():
            value = new
            while value in self.layers.stands_for:
                value = self.layers.stands_for[value]
            if old < count and self.layers.shape(value) == self.layers.shape(new):
                found.setdefault(value, old)
        return found

    def name_of(self, t: int) -> str:
        """Return the name of the layer that writes a tensor of the source."""
        return self.source.tensors[t].name

    def top(self, t: int) -> Tensor:
        """Return a tensor of the source as a layer writes it: truth values are uint8, integers have 32 bits at most."""
        old = self.source.tensors[t]
        return replace(old, dtype=_NARROWED.get(old.dtype, old.dtype), extra=None)

    def inner(self, t: int, shape: tuple[int, ...] | None = None) -> Tensor:
        """Return a tensor of the source in another shape, for a layer that states no range."""
        top = self.top(t)
        top = top if shape is None else replace(top, shape=shape)
        return inherit(top) if self.layers.is_quantized else top

    def input(self, t: int) -> None:
        """Add an input of the graph."""
        self.places[t] = self.layers.add_tensor(self.top(t))
        self.layers.add(Node(INPUT, (), (self.places[t],), name=self.name_of(t)))

    def layer_of_constant(self, name: str, data: Array, stated: Range | None = None) -> int:
        """Add a Constant layer, with the range of the file's constant if it is one, and return its result."""
        return self.layers.add_constant_layer(name, data, stated=stated)

    def operand(self, t: int) -> int:
        """Return the value for a tensor of the source; each node that reads a constant gets a layer for it."""
        tensor = self.source.tensors[t]
        if tensor.data is None:
            return self.places[t]
        return self.layer_of_constant(self.constants.get((self.current, t), tensor.name), tensor.data, tensor.range)

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
            inputs: values.
            tops: types, shapes and ranges of the outputs.
            keys: of the layer.
            constants: of the layer, by key.
        """
        layer = self.layers.unique_name(name)
        self.layers.settings[layer] = node.name
        own = tuple(self.layers.add_constant(layer, k, v) for k, v in (constants or {}).items())
        if operator == "activation" and own:
            slopes = self.source.tensors[node.inputs[1]]
            self.layers.tensors[own[0]] = replace(self.layers.tensors[own[0]], range=slopes.range)
        written = tuple(map(self.layers.add_tensor, tops))
        self.layers.add(Node(operator, (*inputs, *own), written, Attributes(keys or {}), layer))
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

    def reshaped(self, node: Node, value: int, shape: tuple[int, ...]) -> int:
        """Add the Reshape of a value, named after the layer that writes it, and return what it writes."""
        writer = self.layers.writer(value)
        if node.operator == "pack" and writer is not None and writer.operator == "quantize":
            writer = self.layers.writer(writer.inputs[0])  # the Parser has removed it when it splits PACK
        assert writer is not None
        top = replace(self.layers.tensors[value], shape=shape, data=None)
        return self.layer(node, f"{writer.name}_post_reshape", "reshape", (value,), (top,), {"shape": shape})[0]

    def transposed(self, node: Node, value: int, perm: tuple[int, ...]) -> int:
        """Add the Transpose of a value, named after the layer that writes it; a constant is turned where it stands."""
        writer, old = self.layers.writer(value), self.layers.tensors[value]
        assert writer is not None
        data = self.layers.constant(value)
        if data is not None:
            self.layers.remove(writer)
            name, turned = f"{writer.name}_post_transpose", np.ascontiguousarray(data.transpose(perm))
            return self.layer_of_constant(name, turned, old.range)
        top = replace(old, shape=tuple(old.shape[axis] for axis in perm), data=None)
        return self.layer(node, f"{writer.name}_post_transpose", "transpose", (value,), (top,), {"perm": perm})[0]

    def reshape(self, node: Node, source: int, t: int, name: str) -> None:
        """Add the Reshape that writes a tensor of the source."""
        written = self.layer(node, name, "reshape", (source,), (self.top(t),), {"shape": self.shape(t)})
        self.places[t] = written[0]

    def size(self, t: int) -> int:
        """Return the number of elements of a tensor of the source."""
        return self.source.tensors[t].size

    def add_internal(self, t: int, limits: Mapping[str, tuple[float, float] | None]) -> None:
        """Give the layer that writes a tensor of the source what it computes within itself, with ranges where known."""
        node = self.layers.writer(self.places[t])
        assert node is not None
        internal = []
        for name, pair in limits.items():
            known = None if pair is None else Range(*(np.array([v], np.float32) for v in pair))
            internal.append(self.layers.add_tensor(Tensor(f"{node.name}/{name}", (), DType.FLOAT32, range=known)))
            self.layers.unstate(internal[-1])
        self.layers.replace(node, replace(node, intermediates=tuple(internal)))

    def difference(self, node: Node) -> Range | None:
        """Return the range that the difference of a node's first two operands may have; None where nothing says."""
        a, b = (self.limits(t) for t in node.inputs[:2])
        if a is None or b is None:
            return None
        return Range(np.array([a[0] - b[1]], np.float32), np.array([a[1] - b[0]], np.float32))

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
        reads_all: bool = False,
    ) -> None:
        """Add the layer of a node that reads its first input, or all of them, and writes all its outputs."""
        inputs = [self.operand(t) for t in (node.inputs if reads_all else node.inputs[:1])]
        self.add(node, operator, inputs, node.outputs, attributes, constants)
