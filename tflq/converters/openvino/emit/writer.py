"""Writes a graph as layers of the IR.

Operators with levels (`NAMED`) are written with channels first, and their layers have the names of the nodes. All other
operators keep the layout of their operands; the names of their layers consist of node and type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tflq.arrays import Singles
from tflq.converters.exchange.emitter import CLAMPS, Emitter, ExchangeAttribute, Kind, Value, turned
from tflq.converters.openvino.ir import Builder, dtype_of, element_type
from tflq.converters.openvino.ir import Value as Port
from tflq.converters.openvino.passes import LINEAR, MOVING
from tflq.converters.passes.patterns import TO_FIRST, TO_LAST, axis_first, shape_first
from tflq.errors import UnsupportedError
from tflq.graph import ABSENT, Affine, Array, DType, FakeQuantize, Graph, Node, Tensor, dequantize
from tflq.graph.operators import CONVERSIONS, RESHAPES
from tflq.interpreter.kernels.openvino.levels import CODES, input_rule, rule_of

NUMPY = "numpy"
Results = Sequence[tuple[tuple[int, ...], Kind]]
Attributes = Mapping[str, ExchangeAttribute]
_OWN = ("FloorMod", "Gelu", "HardSwish", "LSTMSequence", "ReduceAny", "ScatterND:add")
NAMED = frozenset(
    (
        *(*LINEAR, *MOVING, *CLAMPS, "abs", "div", "elu", "exp", "hard_swish", "leaky_relu", "log", "logistic"),
        *("maximum", "minimum", "padv2", "prelu", "softmax", "sqrt", "tanh", "quantize", "dequantize", "fake_quantize"),
    )
)
_MOVING = (*MOVING, "padv2")
_PLAIN = (DType.FLOAT32, DType.INT32, DType.INT64, DType.BOOL)
"""Types of values that are not quantized."""


class Writer(Emitter):
    """An IR under construction.

    Attributes:
        rows: Operator of ONNX -> the function that adds its layers.
        builder: Builder of the IR.
        constants: Name of a constant value -> its array.
    """

    target = "openvino"
    refusal = "no layer of the IR is known"

    def __init__(self, graph: Graph, rows: Mapping[str, Row]) -> None:
        super().__init__(graph)
        self.rows = rows
        self.builder = Builder(graph.name or "model")
        self.constants: dict[str, Array] = {}
        self._ports: dict[str, Port] = {}
        self._pending: dict[str, str] = {}  # constant that no layer has read yet -> name of its layer
        self._tensors: dict[tuple[int, bool], Value] = {}  # by tensor and whether channels are first; of 4 axes both
        self._label = ""

    @property
    def is_named(self) -> bool:
        """Whether the node's layers have its name: its operator is in NAMED, and not computed on plain integers."""
        operator = self.node.operator
        return operator in RESHAPES or (operator in NAMED and not self._is_plain)

    @property
    def _is_plain(self) -> bool:
        """Whether the node computes on integers that are not quantized, or on truth values."""
        tensors = [self.tensor(t) for t in (*self.node.inputs, *self.node.outputs) if t != ABSENT]
        return not any(t.dtype.is_floating or t.quantization is not None for t in tensors)

    def has(self, kind: str) -> bool:
        """Whether the IR has an operator that ONNX does not have, or not in every opset."""
        return kind in _OWN

    def is_written(self, t: int) -> bool:
        """Whether a tensor is an input or was computed; a variable is refused by the rule that reads it."""
        return (t, True) in self._tensors or (t, False) in self._tensors or self.tensor(t).is_variable

    def is_omitted(self, node: Node) -> bool:
        """Whether lowering computed the results of a node: its readers write them as constants."""
        return bool(node.outputs) and all(self.tensor(t).is_constant for t in node.outputs)

    def require(self, node: Node) -> None:
        """Check the types around levels."""
        if node.operator not in CONVERSIONS:
            return
        source, output = self.tensor(node.inputs[0]), self.tensor(node.outputs[0])
        if node.operator == "dequantize" and source.is_constant:
            raise UnsupportedError(f"constant '{source.name}' was not folded")
        if node.operator == "quantize" and not output.dtype.is_integer and source.dtype is not output.dtype:
            raise UnsupportedError(f"{source.dtype.value} to {output.dtype.value}; float32 stays float32")

    def stored(self, t: int) -> Value:
        """Return a tensor in its stored layout; constants in the model's layout, except for named operators."""
        if self.is_named:
            return self.in_layout(t, True)
        data = self.tensor(t).data
        if data is not None:
            return self.number(self.tensor(t).name, data)
        return self._tensors[t, True] if (t, True) in self._tensors else self._tensors[t, False]

    def in_layout(self, t: int, first: bool) -> Value:
        """Return a tensor in a layout; written once.

        Raises:
            UnsupportedError: a constant of a type that cannot be written.
        """
        tensor = self.tensor(t)
        key = t, first or len(tensor.shape) != 4
        if key not in self._tensors:
            if key[1] and (t, False) not in self._tensors:
                data = self._constant(t)
                port = self.builder.constant(tensor.name, data.transpose(TO_FIRST) if data.ndim == 4 else data)
            else:
                other, order, layout = self.port(self.in_layout(t, not first)), *_TURNS[first]
                port = self.move_axes(other, order, f"{tensor.name}/{layout}")
            self._tensors[key] = self.value(port, first)
        return self._tensors[key]

    def together(self, positions: Sequence[int]) -> list[Value]:
        """Return operands that broadcast; operands of a named operator get the rank of its output."""
        if not self.is_named:
            return super().together(positions)
        rank = len(self.output().shape)
        return [self._beside(self.node.inputs[p], rank) for p in positions]

    def _beside(self, t: int, rank: int) -> Value:
        tensor = self.tensor(t)
        if len(tensor.shape) == rank:
            return self.in_layout(t, True)
        padded, name = (1,) * (rank - len(tensor.shape)) + tensor.shape, f"{tensor.name}/broadcast"
        if tensor.data is not None:
            if tensor.data.dtype != np.float32:
                raise UnsupportedError(f"constant '{tensor.name}' is {tensor.data.dtype}; float32 is needed")
            data = tensor.data.reshape(padded)
            return self.value(self.reals(name, data.transpose(TO_FIRST) if rank == 4 else data), True)
        port = self.reshape_port(self.port(self.in_layout(t, False)), padded, name)
        return self.value(self.move_axes(port, TO_FIRST, name) if rank == 4 else port, True)

    def like(self, value: Value, name: str, number: float) -> Value:
        """Add a number of a value's type: a scalar; in a named operator it has the rank of the value."""
        array = np.asarray(number, value.dtype)
        return self.number(name, array.reshape((1,) * value.rank) if self.is_named else array)

    def number(self, name: str, array: Array) -> Value:
        """Add a constant; a layer of a named operator adds the constants that it reads."""
        value = Value(f"constant {len(self.constants)}", array.shape, array.dtype)
        self.constants[value.name], self._pending[value.name] = array, f"{self.node.name}/{name}"
        if not self.is_named:
            self.port(value)
        return value

    def weights(self, t: int, array: Array, axis: int) -> Value:  # noqa: ARG002 - `filter_port` reads the scales
        """Add a constant of the graph, rearranged."""
        return self.number(self.tensor(t).name, array)

    def add_multi(
        self,
        kind: str,
        inputs: Sequence[Value | None],
        results: Results,
        first: bool,
        label: str = "",
        **attributes: ExchangeAttribute,
    ) -> list[Value]:
        """Add the layers of an operator."""
        for _, dtype in results:
            require_element(dtype)
        if kind not in self.rows:
            raise UnsupportedError(f"no layer of the IR is known for {kind}")
        self._label = label
        ports = self.rows[kind](self, inputs, results, attributes)
        self._label = ""
        return [self.value(port, first) for port in ports]

    def result(self, value: Value) -> None:
        """Bind the node's output to a value downstream of the fused activation."""
        super().result(turned(self, value, True) if self.is_named else value)

    def set_tensor(self, t: int, value: Value) -> None:
        """Bind a tensor to a value, downstream of its FakeQuantize if the node writes levels."""
        rule = self._written_levels(self.tensor(t))
        if rule is not None:
            port = self.fake_quantize(self.port(value), rule, self.tensor(t).name)
            value = self.value(port, value.is_first)
        self._tensors[t, value.is_first or value.rank != 4] = value

    def _written_levels(self, tensor: Tensor) -> FakeQuantize | None:
        if self.node.operator == "fake_quantize":
            if not isinstance(tensor.quantization, FakeQuantize):
                raise UnsupportedError("states no levels and ranges")
            return tensor.quantization
        writes_levels = self.is_named and tensor.dtype in CODES and self.node.operator not in _MOVING
        return input_rule(self.node, tensor) if writes_levels else None

    def port(self, value: Value) -> Port:
        """Return the output of the layer that computes a value."""
        if value.name in self._pending:
            require_element(value.dtype)
            name = self._pending.pop(value.name)
            self._ports[value.name] = self.builder.constant(name, self.constants[value.name])
        return self._ports[value.name]

    def integers(self, value: Value) -> list[int]:
        """Return the numbers of a constant."""
        return [int(v) for v in self.constants[value.name].reshape(-1)]

    def layer_name(self, kind: str, label: str = "") -> str:
        """Return the name of a layer of the node."""
        part = (label or self._label) if self.is_named else kind
        return f"{self.node.name}/{part}" if part else self.node.name

    def layer(
        self, kind: str, inputs: Sequence[Value | Port | None], results: Results, label: str = "", /, **data: object
    ) -> list[Port]:
        """Add one layer; `data` are its attributes as Python values."""
        ports = [self.port(v) if isinstance(v, Value) else v for v in inputs if v is not None]
        shapes = [(shape, require_element(dtype)) for shape, dtype in results]
        texts = {key: _text(value) for key, value in data.items()}
        return self.builder.add_several(kind, self.layer_name(kind, label), ports, shapes, texts)

    def reals(self, name: str, array: Array) -> Port:
        """Add a float32 constant."""
        return self.builder.constant(name, np.asarray(array, np.float32))

    def reshape_port(self, port: Port, shape: Sequence[int], name: str) -> Port:
        """Add a Reshape of this name."""
        target = self.builder.constant(f"{name}/shape", np.asarray(shape, np.int64))
        return self.builder.add("Reshape", name, [port, target], shape, port.element_type, special_zero="false")

    def move_axes(self, port: Port, order: Sequence[int], name: str) -> Port:
        """Add a Transpose of this name; a Reshape if only axes of size 1 move."""
        shape = tuple(port.shape[a] for a in order)
        kept = [a for a in order if port.shape[a] != 1]
        if kept == sorted(kept):
            return self.reshape_port(port, shape, name) if shape != port.shape else port
        return self._transpose(port, order, name)

    def _transpose(self, port: Port, order: Sequence[int], name: str) -> Port:
        axes = self.builder.constant(f"{name}/order", np.asarray(order, np.int64))
        shape = tuple(port.shape[a] for a in order)
        return self.builder.add("Transpose", name, [port, axes], shape, port.element_type)

    def fake_quantize(self, port: Port, rule: FakeQuantize, name: str) -> Port:
        """Add a FakeQuantize; bounds are per channel if the rule has several."""
        low, high = (self._bound(name, side, getattr(rule, f"input_{side}"), port) for side in ("low", "high"))
        outputs = [low, high]
        for position, side in enumerate(("low", "high")):
            bound = getattr(rule, f"output_{side}")
            if not np.array_equal(bound, getattr(rule, f"input_{side}")):
                outputs[position] = self._bound(f"{name}/output", side, bound, port)
        inputs, levels = [port, low, high, *outputs], str(rule.levels)
        return self.builder.add("FakeQuantize", name, inputs, port.shape, levels=levels, auto_broadcast=NUMPY)

    def _bound(self, name: str, side: str, bound: Array, port: Port) -> Port:
        shape = [1] * len(port.shape)
        if bound.size > 1:
            shape[axis_first(-1, len(shape))] = bound.size
        return self.reals(f"{name}/{side}", bound.reshape(shape))

    def add_input(self, t: int) -> None:
        """Add an input: f32 with channels first, or quantized values in the layout of the .tflite.

        Raises:
            UnsupportedError: another type.
        """
        tensor = self.tensor(t)
        if tensor.quantization is None and tensor.dtype in _PLAIN:
            shape, kind = shape_first(tensor.shape), require_element(tensor.dtype.storage)
            self._tensors[t, True] = self.value(self.builder.parameter(tensor.name, shape, kind), True)
            return
        if tensor.dtype is not DType.INT8:
            raise UnsupportedError(
                f"input '{tensor.name}' is {tensor.dtype.value}; float32, int32, int64, bool and quantized int8 can be "
                f"written"
            )
        port = self.builder.parameter(tensor.name, tensor.shape, "i8")
        if len(tensor.shape) == 4:  # a Transpose for all sizes, so that the ends of the network look the same
            port = self._transpose(port, TO_FIRST, f"{tensor.name}/nchw")
        port = self.builder.add("Convert", f"{tensor.name}/f32", [port], port.shape, destination_type="f32")
        rule, (low, high) = rule_of(tensor.affine), _code_bounds(tensor)
        rule = FakeQuantize(rule.levels, low, high, rule.output_low, rule.output_high)
        self._tensors[t, True] = self.value(self.fake_quantize(port, rule, f"{tensor.name}/reals"), True)

    def add_output(self, t: int) -> None:
        """Add an output: f32 with channels first, or quantized values in the graph's layout."""
        tensor, port = self.tensor(t), self.port(self.in_layout(t, True))
        if tensor.dtype in CODES:
            rule, (low, high) = rule_of(tensor.affine), _code_bounds(tensor)
            to_codes = FakeQuantize(rule.levels, rule.input_low, rule.input_high, low, high)
            port = self.fake_quantize(port, to_codes, f"{tensor.name}/codes")
            port = self.builder.add("Convert", f"{tensor.name}/i8", [port], port.shape, "i8", destination_type="i8")
            if len(tensor.shape) == 4:
                port = self._transpose(port, TO_LAST, f"{tensor.name}/bytes")
        self.builder.result(tensor.name, port)

    def _constant(self, t: int) -> Array:
        tensor = self.tensor(t)
        if tensor.data is None:
            raise UnsupportedError(f"'{tensor.name}' is computed at run time; a constant is needed")
        if tensor.dtype in CODES and isinstance(tensor.quantization, Affine):
            return dequantize(tensor.data, tensor.quantization).astype(np.float32)
        if tensor.data.dtype not in {kind.storage for kind in _PLAIN}:
            raise UnsupportedError(f"constant '{tensor.name}' is {tensor.data.dtype}, which cannot be written")
        return tensor.data

    def value(self, port: Port, first: bool) -> Value:
        """Return the value of a layer's output; `first` if 4 axes are [N, C, H, W]."""
        name = f"{port.source.layer}.{port.source.output}"
        self._ports[name] = port
        return Value(name, port.shape, dtype_of(port.element_type), first and len(port.shape) == 4)


_TURNS: Mapping[bool, tuple[tuple[int, ...], str]] = {True: (TO_FIRST, "nchw"), False: (TO_LAST, "nhwc")}


Row = Callable[[Writer, Sequence[Value | None], Results, Attributes], list[Port]]


def require_element(dtype: Kind) -> str:
    """Return the element type of a numpy type.

    Raises:
        UnsupportedError: another type.
    """
    try:
        return element_type(dtype)
    except KeyError:
        raise UnsupportedError(
            f"a value of {dtype}; float32, int8, uint8, int32, int64 and bool can be written"
        ) from None


def _code_bounds(tensor: Tensor) -> tuple[Singles, Singles]:
    affine = tensor.affine
    return np.array([affine.minimum_code], np.float32), np.array([affine.maximum_code], np.float32)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ", ".join(map(str, value)) if isinstance(value, (tuple, list)) else str(value)
