"""A graph under construction from an IR: each value in the layout of the file, in ours, or in both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tflq.arrays import Singles
from tflq.converters.openvino.ir import Layer, Network, Source
from tflq.converters.openvino.passes import ARITHMETIC
from tflq.converters.passes.patterns import TO_FIRST, TO_LAST
from tflq.converters.passes.rewrite import constant
from tflq.errors import UnsupportedError
from tflq.graph import Affine, Array, Attributes, DType, FakeQuantize, Graph, Node, Tensor
from tflq.graph.attributes import Attribute

_TYPES = {"f32": DType.FLOAT32, "i8": DType.INT8, "u8": DType.UINT8, "i32": DType.INT32, "i64": DType.INT64}


@dataclass(frozen=True, eq=False)
class Codes:
    """A constant as an IR compresses it: (code - zero point) * scale.

    Attributes:
        codes: integers.
        zero_point: broadcasts against them.
        scale: broadcasts against them; None until a Multiply has said it.
    """

    codes: Array
    zero_point: Singles
    scale: Singles | None = None

    @property
    def reals(self) -> Array:
        """What they stand for, float32."""
        scale = np.float64(1) if self.scale is None else self.scale.astype(np.float64)
        return np.asarray(((self.codes.astype(np.float64) - self.zero_point) * scale).astype(np.float32))


@dataclass
class Reading:
    """What is known of the layers read so far.

    Attributes:
        network: the IR.
        graph: what it becomes.
        plain: source -> tensor in the file's layout.
        last: source of four axes -> tensor with channels last.
        constants: source -> value.
        compressed: source -> integers that stand for reals.
    """

    network: Network
    graph: Graph
    plain: dict[Source, int] = field(default_factory=dict)
    last: dict[Source, int] = field(default_factory=dict)
    constants: dict[Source, Array] = field(default_factory=dict)
    compressed: dict[Source, Codes] = field(default_factory=dict)

    def shape(self, source: Source) -> tuple[int, ...]:
        """Return a value's shape in the file's layout."""
        return self.network.port(source).shape

    def constant(self, source: Source) -> Array:
        """Return the value of a constant.

        Raises:
            UnsupportedError: it is computed.
        """
        if source in self.constants:
            return self.constants[source]
        if source in self.compressed:
            return self.compressed[source].reals
        name = self.network.layers[source.layer].name
        raise UnsupportedError(f"'{name}' is computed at run time; a constant is needed")

    def is_constant(self, source: Source) -> bool:
        """Whether a value is known."""
        return source in self.constants or source in self.compressed

    def in_plain(self, source: Source) -> int:
        """Return the tensor in the file's layout."""
        if source not in self.plain:
            if self.is_constant(source):
                self.plain[source] = self.add_constant(self._name(source), self.constant(source))
            else:
                self.plain[source] = self.transposed(self.last[source], TO_FIRST, f"{self._name(source)}/nchw")
        return self.plain[source]

    def in_last(self, source: Source) -> int:
        """Return the tensor with channels last; of other ranks than 4 as it is."""
        if len(self.shape(source)) != 4:
            return self.in_plain(source)
        if source not in self.last:
            if self.is_constant(source):
                data = self.constant(source).transpose(TO_LAST)
                self.last[source] = self.add_constant(f"{self._name(source)}/nhwc", data)
            else:
                self.last[source] = self.transposed(self.plain[source], TO_LAST, f"{self._name(source)}/nhwc")
        return self.last[source]

    def is_last(self, source: Source) -> bool:
        """Whether a value exists with channels last, or with no layout at all."""
        return source in self.last

    def transposed(self, t: int, order: Sequence[int], name: str) -> int:
        """Add a TRANSPOSE."""
        tensor = self.graph.tensors[t]
        axes = self.add_constant(f"{name}/order", np.array(order, np.int32))
        out = self.graph.add_tensor(replace(tensor, name=name, shape=tuple(tensor.shape[a] for a in order)))
        self.graph.nodes.append(Node("transpose", (t, axes), (out,), name=name))
        return out

    def add_constant(self, name: str, value: Array, affine: Affine | None = None) -> int:
        """Add a constant tensor."""
        return self.graph.add_tensor(constant(name, np.array(value, order="C"), affine))

    def input(self, layer: Layer, source: Source) -> None:
        """Make a Parameter an input of the graph."""
        port = layer.outputs[0]
        tensor = Tensor(port.names[0] if port.names else layer.name, port.shape, _dtype(port.element_type))
        t = self.graph.add_tensor(tensor)
        self.graph.inputs += (t,)
        self.plain[source] = t

    def add(
        self,
        operator: str,
        inputs: Sequence[int],
        source: Source,
        in_last: bool = False,
        rule: FakeQuantize | None = None,
        attributes: Mapping[str, Attribute] | None = None,
    ) -> None:
        """Add the node that computes a value, with channels last or in the file's layout.

        Args:
            operator: TFLite's name.
            inputs: tensors.
            source: the value.
            in_last: the layout of the result, where it has four axes.
            rule: levels of the result.
            attributes: of the node.
        """
        port = self.network.port(source)
        is_last = in_last and len(port.shape) == 4
        shape = tuple(port.shape[a] for a in TO_LAST) if is_last else port.shape
        name = self._name(source)
        t = self.graph.add_tensor(Tensor(name, shape, _dtype(port.element_type), rule))
        arithmetic = ARITHMETIC if rule is not None else None
        node = Node(operator, tuple(inputs), (t,), Attributes(attributes), name, arithmetic=arithmetic)
        self.graph.nodes.append(node)
        (self.last if is_last else self.plain)[source] = t

    def weights(self, source: Source, codes: Array, affine: Affine) -> int:
        """Add constant quantized values and the Dequantize behind them."""
        name = self._name(source)
        stored = self.add_constant(name, codes.astype(np.int8), affine)
        t = self.graph.add_tensor(Tensor(f"{name}/reals", codes.shape, DType.FLOAT32))
        self.graph.nodes.append(Node("dequantize", (stored,), (t,), name=f"{name}/dequantize", arithmetic=ARITHMETIC))
        return t

    def output(self, layer: Layer) -> None:
        """Make a value an output of the graph."""
        (source,) = layer.sources
        self.graph.outputs += (self.in_plain(source),)

    def _name(self, source: Source) -> str:
        return self.network.layers[source.layer].name


def _dtype(element_type: str) -> DType:
    if element_type not in _TYPES:
        raise UnsupportedError(f"values of {element_type}; read are {', '.join(_TYPES)}")
    return _TYPES[element_type]
