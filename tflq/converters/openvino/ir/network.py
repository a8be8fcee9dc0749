"""The layers of an IR, and a builder for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tflq.converters.openvino.ir.element_types import PRECISIONS, element_type
from tflq.graph import Array
from tflq.quoting import Names
from tflq.schemas.openvino import opset_of


@dataclass(frozen=True)
class Port:
    """One output of a layer.

    Attributes:
        element_type: "f32", "i8", ...
        shape: its dimensions.
        names: tensor names that a user finds it by.
    """

    element_type: str
    shape: tuple[int, ...]
    names: tuple[str, ...] = ()

    @property
    def precision(self) -> str:
        """As ports state it: "FP32", "I8", ..."""
        return PRECISIONS[self.element_type]


@dataclass(frozen=True)
class Source:
    """Where an input comes from.

    Attributes:
        layer: position among the network's layers.
        output: which of its outputs.
    """

    layer: int
    output: int = 0


@dataclass(frozen=True, eq=False)
class Layer:
    """One layer.

    Attributes:
        name: unique in what we write.
        type: "Convolution", "Const", ...
        version: "opset1", ...
        data: attributes as text.
        sources: of its inputs, in order.
        outputs: its outputs.
        value: of a Const.
        line: of the file that it was read from; 0 elsewhere.
    """

    name: str
    type: str
    version: str
    data: Mapping[str, str]
    sources: tuple[Source, ...]
    outputs: tuple[Port, ...]
    value: Array | None = None
    line: int = 0


@dataclass(frozen=True, eq=False)
class Network:
    """Layers in an order in which each stands behind its sources.

    Attributes:
        name: of the model.
        layers: Parameters, Consts and Results among them.
    """

    name: str
    layers: tuple[Layer, ...]

    def port(self, source: Source) -> Port:
        """Return the output that a source names."""
        return self.layers[source.layer].outputs[source.output]


@dataclass(frozen=True)
class Value:
    """What a builder returns for a layer with one output.

    Attributes:
        source: the output.
        element_type: of it.
        shape: of it.
    """

    source: Source
    element_type: str
    shape: tuple[int, ...]


@dataclass
class Builder:
    """Adds layers one by one; names that are taken get a number behind them."""

    name: str = "model"
    layers: list[Layer] = field(default_factory=list)
    names: Names = field(default_factory=lambda: Names(first=1))

    def parameter(self, name: str, shape: Sequence[int], kind: str = "f32") -> Value:
        """Add an input."""
        data = {"shape": ",".join(map(str, shape)), "element_type": kind}
        return self._add("Parameter", name, (), tuple(shape), kind, data, (name,))

    def constant(self, name: str, value: Array, kind: str | None = None) -> Value:
        """Add a constant; `kind` names a type that numpy has not, such as "i4"."""
        return self._add(
            "Const", name, (), value.shape, kind or element_type(value), {}, (), np.ascontiguousarray(value)
        )

    def add(
        self, kind: str, name: str, inputs: Sequence[Value], shape: Sequence[int], result: str = "f32", **data: str
    ) -> Value:
        """Add a layer with one output of a shape and element type; underscores at the end of keys go."""
        stated = {key.rstrip("_"): text for key, text in data.items()}
        return self._add(kind, name, inputs, tuple(shape), result, stated)

    def add_several(
        self,
        kind: str,
        name: str,
        inputs: Sequence[Value],
        results: Sequence[tuple[Sequence[int], str]],
        data: Mapping[str, str],
    ) -> list[Value]:
        """Add a layer with a shape and an element type for each output."""
        ports = tuple(Port(element, tuple(shape)) for shape, element in results)
        sources = tuple(v.source for v in inputs)
        self.layers.append(Layer(self.names.fresh(name), kind, opset_of(kind), data, sources, ports))
        number = len(self.layers) - 1
        return [Value(Source(number, i), port.element_type, port.shape) for i, port in enumerate(ports)]

    def result(self, name: str, value: Value) -> None:
        """Make a value an output of the network that is found by this name."""
        producer, output = self.layers[value.source.layer], value.source.output
        port = producer.outputs[output]
        renamed = replace(port, names=(*port.names, name))
        outputs = (*producer.outputs[:output], renamed, *producer.outputs[output + 1 :])
        self.layers[value.source.layer] = replace(producer, outputs=outputs)
        self.layers.append(
            Layer(self.names.fresh(f"{name}/result"), "Result", opset_of("Result"), {}, (value.source,), ())
        )

    def build(self) -> Network:
        """Return the network."""
        return Network(self.name, tuple(self.layers))

    def _add(
        self,
        kind: str,
        name: str,
        inputs: Sequence[Value],
        shape: tuple[int, ...],
        result: str,
        data: Mapping[str, str],
        names: tuple[str, ...] = (),
        value: Array | None = None,
    ) -> Value:
        sources = tuple(v.source for v in inputs)
        self.layers.append(
            Layer(self.names.fresh(name), kind, opset_of(kind), data, sources, (Port(result, shape, names),), value)
        )
        return Value(Source(len(self.layers) - 1), result, shape)
