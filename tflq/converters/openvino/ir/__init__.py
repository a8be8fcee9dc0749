"""IR v11 of OpenVINO as it stands in the files: layers, ports, edges and constants; no meaning yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tflq.graph import Array
from tflq.quoting import Names
from tflq.schemas.openvino import opset_of

PRECISIONS = {
    "f32": "FP32",
    "f16": "FP16",
    "i4": "I4",
    "u4": "U4",
    "i8": "I8",
    "u8": "U8",
    "i32": "I32",
    "i64": "I64",
    "boolean": "BOOL",
}
"""Name in `element_type` -> name in `precision`."""

_STORAGE = {
    "f32": "<f4",
    "f16": "<f2",
    "i8": "<i1",
    "u8": "<u1",
    "i32": "<i4",
    "i64": "<i8",
    "boolean": "?",
}
_NIBBLES = {"i4": "<i1", "u4": "<u1"}


def size_bytes(name: str, count: int) -> int:
    """Return the bytes of `count` elements; 4-bit ones are packed two in a byte."""
    return (count + 1) // 2 if name in _NIBBLES else count * np.dtype(_STORAGE[name]).itemsize


def dtype_of(name: str) -> np.dtype[np.generic]:
    """Return the numpy type of an element type of 8 bits or more."""
    found: np.dtype[np.generic] = np.dtype(_STORAGE[name]).newbyteorder("=")
    return found


def element_type(dtype: np.dtype[np.generic]) -> str:
    """Return the element type of a numpy type: f32, f16, i8, u8, i32, i64 or boolean.

    Raises:
        KeyError: another type.
    """
    return {dtype_of(name): name for name in _STORAGE}[dtype]


def to_bytes(name: str, array: Array) -> bytes:
    """Return an array's bytes; of 4-bit elements the first stands in the low half of a byte."""
    if name not in _NIBBLES:
        return bytes(array.astype(_STORAGE[name]).tobytes())
    flat = array.reshape(-1).astype(np.uint8) & 15
    even = np.concatenate([flat, np.zeros(flat.size % 2, np.uint8)])
    packed: bytes = (even[::2] | (even[1::2] << 4)).astype(np.uint8).tobytes()
    return packed


def from_bytes(name: str, data: bytes | memoryview, shape: tuple[int, ...]) -> Array:
    """Return the array that bytes of the right length hold, read-only."""
    count = int(np.prod(shape, dtype=np.int64))
    if name in _NIBBLES:
        packed = np.frombuffer(data, np.uint8)
        flat = np.stack([packed & 15, packed >> 4], axis=1).reshape(-1)[:count]
        flat = ((flat ^ 8).astype(np.int8) - 8) if name == "i4" else flat
        values: Array = flat.astype(_NIBBLES[name]).reshape(shape)
    else:
        read = np.frombuffer(data, _STORAGE[name], count).reshape(shape)
        values = read.view(np.uint8).astype(bool) if name == "boolean" else read
    values.setflags(write=False)
    return values


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
        return self._layer("Parameter", name, (), [Port(kind, tuple(shape), (name,))], data)[0]

    def constant(self, name: str, value: Array, kind: str | None = None) -> Value:
        """Add a constant; `kind` names a type that numpy has not, such as "i4"."""
        port = Port(kind or element_type(value.dtype), value.shape)
        return self._layer("Const", name, (), [port], {}, np.ascontiguousarray(value))[0]

    def add(
        self, kind: str, name: str, inputs: Sequence[Value], shape: Sequence[int], result: str = "f32", **data: str
    ) -> Value:
        """Add a layer with one output of a shape and element type."""
        return self._layer(kind, name, inputs, [Port(result, tuple(shape))], data)[0]

    def add_several(
        self,
        kind: str,
        name: str,
        inputs: Sequence[Value],
        results: Sequence[tuple[Sequence[int], str]],
        data: Mapping[str, str],
    ) -> list[Value]:
        """Add a layer with a shape and an element type for each output."""
        return self._layer(kind, name, inputs, [Port(element, tuple(shape)) for shape, element in results], data)

    def result(self, name: str, value: Value) -> None:
        """Make a value an output of the network that is found by this name."""
        producer, output = self.layers[value.source.layer], value.source.output
        outputs = list(producer.outputs)
        outputs[output] = replace(outputs[output], names=(*outputs[output].names, name))
        self.layers[value.source.layer] = replace(producer, outputs=tuple(outputs))
        self._layer("Result", f"{name}/result", [value], [], {})

    def build(self) -> Network:
        """Return the network."""
        return Network(self.name, tuple(self.layers))

    def _layer(
        self,
        kind: str,
        name: str,
        inputs: Sequence[Value],
        ports: list[Port],
        data: Mapping[str, str],
        value: Array | None = None,
    ) -> list[Value]:
        sources = tuple(v.source for v in inputs)
        self.layers.append(Layer(self.names.fresh(name), kind, opset_of(kind), data, sources, tuple(ports), value))
        number = len(self.layers) - 1
        return [Value(Source(number, i), port.element_type, port.shape) for i, port in enumerate(ports)]
