"""Values of a network under construction: reals in the IR's layout, N C H W where a tensor has four axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tflq.converters.openvino.ir import Builder, Value, element_type
from tflq.converters.passes.patterns import TO_FIRST, TO_LAST, axis_first, fused_activation, shape_first
from tflq.errors import UnsupportedError
from tflq.graph import Affine, Array, DType, FakeQuantize, Graph, Node, Tensor, dequantise
from tflq.interpreter.kernels.openvino.levels import CODES, input_rule, rule_of

NUMPY = "numpy"
PLAIN = (DType.FLOAT32, DType.INT32, DType.INT64, DType.BOOL)
"""Types of values that are not quantised."""


@dataclass
class Writer:
    """An IR under construction.

    Attributes:
        graph: what is written.
        builder: of the IR.
        values: tensor -> its reals in the IR's layout.
        plain: tensor of four axes -> its reals in the graph's own layout.
    """

    graph: Graph
    builder: Builder
    values: dict[int, Value] = field(default_factory=dict)
    plain: dict[int, Value] = field(default_factory=dict)

    def tensor(self, t: int) -> Tensor:
        """Return a tensor of the graph."""
        return self.graph.tensors[t]

    def constant_of(self, t: int) -> Array:
        """Return the value of a constant.

        Raises:
            UnsupportedError: it is computed at run time.
        """
        data = self.tensor(t).data
        if data is None:
            raise UnsupportedError(f"'{self.tensor(t).name}' is computed at run time; a constant is needed")
        return data

    def reals(self, name: str, value: Array) -> Value:
        """Add a constant of float32."""
        return self.builder.constant(name, np.asarray(value, np.float32))

    def whole(self, name: str, numbers: Sequence[int]) -> Value:
        """Add a constant of int64: axes, shapes."""
        return self.builder.constant(name, np.asarray(numbers, np.int64))

    def read(self, t: int) -> Value:
        """Return a tensor's reals, or its plain values, in the IR's layout.

        Raises:
            UnsupportedError: a constant of another type.
        """
        if t not in self.values and t in self.plain:
            self.values[t] = self.transposed(self.plain[t], TO_FIRST, f"{self.tensor(t).name}/nchw")
        if t not in self.values:
            data = self._constant(t)
            laid = data.transpose(TO_FIRST) if data.ndim == 4 else data
            self.values[t] = self.builder.constant(self.tensor(t).name, laid)
        return self.values[t]

    def is_written(self, t: int) -> bool:
        """Whether a computed tensor is there."""
        return t in self.values or t in self.plain

    def read_plain(self, t: int) -> Value:
        """Return a tensor's reals in the graph's own layout: N H W C."""
        shape = self.tensor(t).shape
        if len(shape) != 4:
            return self.read(t)
        if t not in self.plain:
            self.plain[t] = self.transposed(self.read(t), TO_LAST, f"{self.tensor(t).name}/nhwc")
        return self.plain[t]

    def read_beside(self, t: int, rank: int) -> Value:
        """Return an operand of an elementwise operator of this rank: axes of 1 stand in front of its own."""
        shape = self.tensor(t).shape
        if len(shape) == rank:
            return self.read(t)
        padded = (1,) * (rank - len(shape)) + shape
        name = f"{self.tensor(t).name}/broadcast"
        if self.tensor(t).is_constant:
            data = self._real_constant(t).reshape(padded)
            return self.reals(name, data.transpose(TO_FIRST) if rank == 4 else data)
        value = self.reshaped(self.read_plain(t), padded, name)
        return self.transposed(value, TO_FIRST, name) if rank == 4 else value

    def reshaped(self, value: Value, shape: Sequence[int], name: str) -> Value:
        """Add a Reshape."""
        target = self.whole(f"{name}/shape", shape)
        return self.builder.add("Reshape", name, [value, target], shape, value.element_type, special_zero="false")

    def transposed(self, value: Value, order: Sequence[int], name: str) -> Value:
        """Add a Transpose; a Reshape does where only axes of 1 change places."""
        shape = tuple(value.shape[a] for a in order)
        kept = [a for a in order if value.shape[a] != 1]
        if kept == sorted(kept):
            return self.reshaped(value, shape, name) if shape != value.shape else value
        return self.transposed_codes(value, order, name)

    def write(self, node: Node, value: Value) -> None:
        """Take the real result of a node in the IR's layout: its activation, then its levels where it writes some."""
        t = node.outputs[0]
        value = self.activated(value, fused_activation(node), node.name)
        if self.tensor(t).dtype in CODES:
            value = self.fake_quantise(value, input_rule(node, self.tensor(t)), self.tensor(t).name)
        self.values[t] = value

    def activated(self, value: Value, activation: str, name: str) -> Value:
        """Add an activation that clamps.

        Raises:
            UnsupportedError: another one.
        """
        if activation == "none":
            return value
        if activation == "relu":
            return self.builder.add("ReLU", f"{name}/relu", [value], value.shape)
        bounds = {"relu6": ("0.0", "6.0"), "relu_n1_to_1": ("-1.0", "1.0"), "relu_0_to_1": ("0.0", "1.0")}
        if activation not in bounds:
            raise UnsupportedError(f"fused activation {activation}; known are relu, {', '.join(bounds)}")
        low, high = bounds[activation]
        return self.builder.add("Clamp", f"{name}/clamp", [value], value.shape, min=low, max=high)

    def fake_quantise(self, value: Value, rule: FakeQuantize, name: str) -> Value:
        """Add a FakeQuantize; bounds are per channel where the rule has several."""
        low, high = (self._bound(name, side, getattr(rule, f"input_{side}"), value) for side in ("low", "high"))
        outputs = [low, high]
        for position, side in enumerate(("low", "high")):
            bound = getattr(rule, f"output_{side}")
            if not np.array_equal(bound, getattr(rule, f"input_{side}")):
                outputs[position] = self._bound(f"{name}/output", side, bound, value)
        inputs = [value, low, high, *outputs]
        return self.builder.add(
            "FakeQuantize", name, inputs, value.shape, levels=str(rule.levels), auto_broadcast=NUMPY
        )

    def parameter(self, t: int) -> None:
        """Add an input: float32 in the IR's layout, or quantized values in the graph's own, as a .tflite takes them.

        Raises:
            UnsupportedError: another type.
        """
        tensor = self.tensor(t)
        if tensor.quantisation is None and tensor.dtype in PLAIN:
            kind = element_type(tensor.dtype.storage)
            self.values[t] = self.builder.parameter(tensor.name, shape_first(tensor.shape), kind)
            return
        if tensor.dtype is not DType.INT8:
            raise UnsupportedError(
                f"input '{tensor.name}' is {tensor.dtype.value}; float32, int32, int64, bool and quantised int8 can be "
                f"written"
            )
        value = self.builder.parameter(tensor.name, tensor.shape, "i8")
        if len(tensor.shape) == 4:
            value = self.transposed_codes(value, TO_FIRST, f"{tensor.name}/nchw")
        value = self.builder.add("Convert", f"{tensor.name}/f32", [value], value.shape, destination_type="f32")
        rule, (low, high) = rule_of(tensor.affine), _code_bounds(tensor)
        self.values[t] = self.fake_quantise(
            value, FakeQuantize(rule.levels, low, high, rule.output_low, rule.output_high), f"{tensor.name}/reals"
        )

    def result(self, t: int) -> None:
        """Add an output: float32 in the IR's layout, or quantized values in the graph's own."""
        tensor, value = self.tensor(t), self.read(t)
        if tensor.dtype in CODES:
            rule, (low, high) = rule_of(tensor.affine), _code_bounds(tensor)
            to_codes = FakeQuantize(rule.levels, rule.input_low, rule.input_high, low, high)
            value = self.fake_quantise(value, to_codes, f"{tensor.name}/codes")
            value = self.builder.add("Convert", f"{tensor.name}/i8", [value], value.shape, "i8", destination_type="i8")
            if len(tensor.shape) == 4:
                value = self.transposed_codes(value, TO_LAST, f"{tensor.name}/bytes")
        self.builder.result(tensor.name, value)

    def transposed_codes(self, value: Value, order: Sequence[int], name: str) -> Value:
        """Add a Transpose whatever the sizes: the ends of the network look the same for all of them."""
        shape = tuple(value.shape[a] for a in order)
        return self.builder.add(
            "Transpose", name, [value, self.whole(f"{name}/order", order)], shape, value.element_type
        )

    def _bound(self, name: str, side: str, bound: Array, value: Value) -> Value:
        rank = len(value.shape)
        shape = [1] * rank
        if bound.size > 1:
            shape[axis_first(-1, rank)] = bound.size
        return self.reals(f"{name}/{side}", bound.reshape(shape))

    def _constant(self, t: int) -> Array:
        data, affine = self.constant_of(t), self.tensor(t).quantisation
        if self.tensor(t).dtype in CODES and isinstance(affine, Affine):
            return dequantise(data, affine).astype(np.float32)
        if data.dtype not in {kind.storage for kind in PLAIN}:
            raise UnsupportedError(f"constant '{self.tensor(t).name}' is {data.dtype}, which cannot be written")
        return data

    def _real_constant(self, t: int) -> Array:
        data = self.constant_of(t)
        if data.dtype != np.float32:
            raise UnsupportedError(f"constant '{self.tensor(t).name}' is {data.dtype}; float32 is needed")
        return data


def _code_bounds(tensor: Tensor) -> tuple[np.ndarray, np.ndarray]:
    affine = tensor.affine
    return np.array([affine.minimum_code], np.float32), np.array([affine.maximum_code], np.float32)
