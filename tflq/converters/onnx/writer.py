"""Collects ONNX nodes while the model's operators are translated one by one.

Tensors of 4 axes that are computed are [N, C, H, W] in ONNX, [N, H, W, C] in the model; all others have the model's own
layout. In a quantized model an operator reads dequantized values, and what it writes is quantized behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tflq.converters.exchange.emitter import (
    FLOAT32,
    Emitter,
    ExchangeAttribute,
    Value,
    is_same_order,
    turned,
    written_shape,
)
from tflq.converters.onnx.model import OnnxAttribute, OnnxGraph, OnnxNode, OnnxValue, tensor_names
from tflq.converters.onnx.options import OnnxOptions
from tflq.converters.onnx.weights import Codes, kept
from tflq.converters.passes.patterns import TO_FIRST, TO_LAST
from tflq.errors import UnsupportedError
from tflq.graph import ABSENT, Affine, Array, DType, Graph, Node, Tensor
from tflq.quoting import Names

SINCE = {"Gelu": 20, "ScatterND:add": 16}
"""Operators that ONNX got behind opset 13."""
_QUANTIZED_SINCE = {
    DType.INT8: 13, DType.UINT8: 13, DType.INT32: 13, DType.INT16: 21, DType.UINT16: 21, DType.INT4: 21, DType.UINT4: 21
}  # fmt: skip
_SCALED = (DType.INT4, DType.INT8, DType.UINT8, DType.INT16, DType.UINT16, DType.INT32, DType.INT64)
_PLAIN = (DType.FLOAT32, DType.INT8, DType.UINT8, DType.INT32, DType.INT64, DType.BOOL)


class Writer(Emitter):
    """The nodes and constants of one ONNX graph.

    Attributes:
        options: Opset and layout.
    """

    simplifies = True
    target = "onnx"
    refusal = "no rule writes {} in ONNX"

    def __init__(self, graph: Graph, options: OnnxOptions | None = None) -> None:
        super().__init__(graph)
        self.options = options or OnnxOptions()
        self._names = Names()
        self._values = tensor_names(graph, self._names)
        self._nodes: list[OnnxNode] = []
        self._constants: dict[str, Array] = {}
        self._types: dict[str, str] = {}  # of constants that have less than 8 bits
        self._fresh: set[str] = set()  # values of no tensor yet
        self._renamed: dict[str, str] = {}
        self._counted = {t: node.inputs[0] for node in graph.nodes if node.operator == "where" for t in node.outputs}
        self._stored = {t: self._stated(t, self.options.channels_first) for t in graph.inputs}
        self._real: dict[int, Value] = {}
        self._turned: dict[tuple[int, bool], Value] = {}

    def has(self, kind: str) -> bool:
        """Whether the opset has an operator."""
        return kind in SINCE and self.options.opset >= SINCE[kind]

    def require(self, node: Node) -> None:
        """Check the types of a node's tensors."""
        for t in (t for t in (*node.inputs, *node.outputs) if t != ABSENT):
            tensor = self.tensor(t)
            if tensor.is_constant and tensor.dtype.is_integer and tensor.quantization is None:
                continue  # shapes, axes and counts, which rules read
            if tensor.dtype not in (_SCALED if is_quantized(tensor) else _PLAIN):
                raise UnsupportedError(f"tensor '{tensor.name}' is {tensor.dtype.value}, which cannot be written")

    def is_written(self, t: int) -> bool:
        """Whether a tensor is an input, was computed, or is the state that a recurrent layer keeps."""
        return t in self._stored or self.tensor(t).is_variable

    def constant(self, wanted: str, value: Array) -> str:
        """Add a constant as it is and return its name."""
        name = self._names.fresh(wanted)
        self._constants[name] = np.ascontiguousarray(value).reshape(np.shape(value))
        return name

    def node_of(self, op_type: str, inputs: Sequence[str], wanted: str, **attributes: OnnxAttribute) -> str:
        """Add a node with a new value and return the value's name."""
        name = self._names.fresh(wanted)
        self._nodes.append(OnnxNode(op_type, tuple(inputs), (name,), attributes))
        self._fresh.add(name)
        return name

    def set_tensor(self, t: int, value: Value) -> None:
        """Let a tensor be a value, quantized where the model quantizes it."""
        tensor, name = self.tensor(t), self._values[t]
        if is_quantized(tensor):
            if tensor.dtype is DType.INT32:
                raise UnsupportedError(f"tensor '{tensor.name}' is int32; QuantizeLinear has no such type")
            value = turned(self, value, True)
            self._nodes.append(OnnxNode("QuantizeLinear", (value.name, *self._scale_and_zero_point(t)), (name,), {}))
        elif value.name in self._fresh:
            self._rename(value.name, name)
        else:
            self._nodes.append(OnnxNode("Identity", (value.name,), (name,), {}))
        self._stored[t] = replace(value, name=name)

    def stored(self, t: int) -> Value:
        """Return a tensor's real numbers, or its plain values, as they are there."""
        tensor = self.tensor(t)
        if tensor.data is not None:
            return Value(self.read_constant(t, tensor.data), tensor.shape, _type_of(tensor))
        if t not in self._real:
            value = self._stored[t]
            if is_quantized(tensor):
                inputs = (value.name, *self._scale_and_zero_point(t))
                value = replace(value, name=self.node_of("DequantizeLinear", inputs, f"{value.name}_dequantized"))
            self._real[t] = value
            self._fresh.discard(value.name)
        return self._real[t]

    def in_layout(self, t: int, first: bool) -> Value:
        """Return a tensor in a layout; made once."""
        if (t, first) not in self._turned:
            self._turned[t, first] = turned(self, self.stored(t), first)
            self._fresh.discard(self._turned[t, first].name)
        return self._turned[t, first]

    def number(self, name: str, array: Array) -> Value:
        """Add a constant."""
        return Value(self.constant(f"{self._prefix}_{name}", array), array.shape, array.dtype)

    def weights(self, t: int, array: Array, axis: int) -> Value:
        """Add a constant tensor of the model, rearranged, and what dequantizes it."""
        return Value(self.read_constant(t, array, axis), array.shape, _type_of(self.tensor(t)))

    def add_multi(
        self,
        kind: str,
        inputs: Sequence[Value | None],
        results: Sequence[tuple[tuple[int, ...], np.dtype[np.generic]]],
        first: bool,
        label: str = "",  # noqa: ARG002 - the nodes have the names of their results
        **attributes: ExchangeAttribute,
    ) -> list[Value]:
        """Add a node."""
        kind = kind.partition(":")[0]
        names = [self._names.fresh(f"{self._prefix}_{kind.lower()}") for _ in results]
        self._fresh.update(names)
        read = ["" if v is None else v.name for v in inputs]
        self._nodes.append(OnnxNode(kind, tuple(read), tuple(names), attributes))
        return [Value(name, shape, dtype, first) for name, (shape, dtype) in zip(names, results, strict=True)]

    def in_order(self, t: int) -> Value:
        """Return a tensor with its elements in the model's own order, in either layout, for a Reshape."""
        value = self.stored(t)
        return value if value.is_first and is_same_order(value.shape) else self.in_layout(t, False)

    def read_constant(self, t: int, value: Array, axis: int = 0) -> str:
        """Add a constant tensor of the model, perhaps rearranged, and return its real value.

        Args:
            t: the tensor; says how integers stand for reals.
            value: its elements.
            axis: that the channels of a per-axis quantization have in `value`.

        Raises:
            UnsupportedError: integers that QuantizeLinear has not in the opset.
        """
        tensor = self.tensor(t)
        affine = tensor.quantization
        if (codes := kept(self.options, t, value, axis)) is not None:
            return self._dequantized(t, codes)
        if not is_quantized(tensor):
            return self.constant(self._values[t], value)
        affine = tensor.affine
        if tensor.dtype is DType.INT64:  # a bias of 16x8
            scale, _ = replace(affine, axis=axis).along(value.ndim)
            return self.constant(self._values[t], (value.astype(np.float64) * scale).astype(np.float32))
        each = affine.scale.shape if affine.is_per_axis else ()
        scale = affine.scale.astype(np.float32).reshape(each)
        zero_point = np.broadcast_to(affine.zero_point, affine.scale.shape).astype(tensor.dtype.storage).reshape(each)
        return self._dequantized(t, Codes(value, tensor.dtype, scale, zero_point, axis))

    def _dequantized(self, t: int, given: Codes) -> str:
        self._require_opset(self.tensor(t).name, given.dtype, given.block_size)
        name = self.constant(self._values[t], given.codes)
        parts = [name, self.constant(f"{name}_scale", given.scale)]
        if given.dtype is not DType.INT32:
            parts.append(self.constant(f"{name}_zero_point", given.zero_point))
        if given.dtype in (DType.INT4, DType.UINT4):
            self._types.update(dict.fromkeys((parts[0], parts[2]), given.dtype.value))
        attributes: dict[str, OnnxAttribute] = {"axis": given.axis} if given.scale.ndim else {}
        if given.block_size:
            attributes["block_size"] = given.block_size
        return self.node_of("DequantizeLinear", parts, f"{name}_dequantized", **attributes)

    def finish(self) -> OnnxGraph:
        """Return the graph, its outputs in the layout that was asked for."""
        self._apply_names()
        inputs = tuple(self._port(t, self._values[t]) for t in self.graph.inputs)
        outputs = tuple(self._output(t) for t in self.graph.outputs)
        nodes, constants = tuple(self._nodes), dict(self._constants)
        first = frozenset(t for t, value in self._stored.items() if value.is_first)
        name = self.graph.name or "main"
        return OnnxGraph(name, nodes, constants, inputs, outputs, self._values, self.options.opset, first, self._types)

    def _output(self, t: int) -> OnnxValue:
        name, first = self._values[t], self.options.channels_first
        if t in self.graph.inputs or self.tensor(t).is_constant:
            name = self._names.fresh(f"{name}_output")
            self._nodes.append(OnnxNode("Identity", (self._as_stored(t, first).name,), (name,), {}))
        elif self._stored[t].rank == 4 and self._stored[t].is_first != first:
            inside = self._names.fresh(f"{name}_inside")
            self._rename(name, inside)
            self._apply_names()
            self._nodes.append(OnnxNode("Transpose", (inside,), (name,), {"perm": TO_FIRST if first else TO_LAST}))
        return self._port(t, name)

    def _as_stored(self, t: int, first: bool) -> Value:
        """Return an input or a constant in a layout; quantized values stay integers."""
        tensor = self.tensor(t)
        if not is_quantized(tensor):
            return self.in_layout(t, first)
        if tensor.data is None:
            return self._stored[t]
        value = Value(self.constant(self._values[t], tensor.data), tensor.shape, tensor.dtype.storage)
        return turned(self, value, first)

    @property
    def _prefix(self) -> str:
        return self._values[self.node.outputs[0]] if self.graph.nodes and self.node.outputs else "value"

    def _rename(self, old: str, new: str) -> None:
        """Give a value another name; `_apply_names` changes the nodes, once for all values."""
        self._renamed[old] = new
        self._fresh.discard(old)

    def _apply_names(self) -> None:
        for index, node in enumerate(self._nodes):
            inputs, outputs = (tuple(map(self._new_name, names)) for names in (node.inputs, node.outputs))
            self._nodes[index] = replace(node, inputs=inputs, outputs=outputs)
        self._real = {t: replace(v, name=self._new_name(v.name)) for t, v in self._real.items()}
        self._turned = {key: replace(v, name=self._new_name(v.name)) for key, v in self._turned.items()}
        self._renamed.clear()

    def _new_name(self, name: str) -> str:
        while name in self._renamed:
            name = self._renamed[name]
        return name

    def _stated(self, t: int, first: bool) -> Value:
        tensor = self.tensor(t)
        first = first and len(tensor.shape) == 4
        return Value(self._values[t], written_shape(tensor.shape, first), _type_of(tensor), first)

    def _port(self, t: int, name: str) -> OnnxValue:
        tensor = self.tensor(t)
        shape: tuple[int | str, ...] = written_shape(tensor.shape, self.options.channels_first)
        if t in self._counted:  # the number of places depends on the values
            shape = (f"{name}_count", len(self.tensor(self._counted[t]).shape))
        return OnnxValue(name, shape, tensor.dtype.storage.name)

    def _require_opset(self, name: str, dtype: DType, block_size: int = 0) -> None:
        since = 21 if block_size else _QUANTIZED_SINCE.get(dtype)
        if since is None:
            raise UnsupportedError(f"tensor '{name}' is {dtype.value}; QuantizeLinear has no such type")
        if self.options.opset < since:
            blocks = f" in blocks of {block_size}" if block_size else ""
            raise UnsupportedError(
                f"tensor '{name}' is {dtype.value}{blocks}, which QuantizeLinear has from opset {since} on: "
                f"set opset={since}, or form=float"
            )

    def _scale_and_zero_point(self, t: int) -> tuple[str, str]:
        tensor, name = self.tensor(t), self._values[t]
        self._require_opset(tensor.name, tensor.dtype)
        if tensor.affine.is_per_axis:
            raise UnsupportedError(f"tensor '{tensor.name}' is quantized per channel; activations have one scale")
        scale = tensor.affine.scale.astype(np.float32).reshape(())
        zero_point = tensor.affine.zero_point.astype(tensor.dtype.storage).reshape(())
        key = f"{name}_scale"
        if key not in self._constants:
            self._constants[key] = scale
            self._constants[f"{name}_zero_point"] = zero_point
        return key, f"{name}_zero_point"


def _type_of(tensor: Tensor) -> np.dtype[np.generic]:
    return FLOAT32 if is_quantized(tensor) else tensor.dtype.storage


def is_quantized(tensor: Tensor) -> bool:
    """Whether a tensor holds integers that stand for reals."""
    return isinstance(tensor.quantization, Affine) and tensor.dtype.is_integer
