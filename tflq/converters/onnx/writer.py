"""Collects ONNX nodes while the model's operators are translated one by one.

Tensors of 4 axes that are computed are [N, C, H, W] in ONNX, [N, H, W, C] in the model; all others have the model's own
layout. In a quantised model an operator reads dequantised values, and what it writes is quantised behind it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tflq.converters.onnx.model import Names, OnnxAttribute, OnnxGraph, OnnxNode, OnnxValue, tensor_names
from tflq.converters.passes.layouts import TO_LAST, shape_first
from tflq.errors import UnsupportedError
from tflq.graph import Affine, Array, DType, Graph, Tensor


class Writer:
    """The state of one translation.

    Attributes:
        graph: the model's graph.
        flattened: tensors that hold a flattened image in the order (c, h, w) -> (h, w, c) of that image.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.flattened: dict[int, tuple[int, int, int]] = {}
        self._names = Names()
        self._values = tensor_names(graph, self._names)
        self._nodes: list[OnnxNode] = []
        self._constants: dict[str, Array] = {}
        self._readable = {t: self._values[t] for t in graph.inputs if not is_quantised(graph.tensors[t])}

    def tensor(self, t: int) -> Tensor:
        """Return a tensor of the model."""
        return self.graph.tensors[t]

    def name(self, t: int) -> str:
        """Return the name of the value that holds a tensor."""
        return self._values[t]

    def constant(self, wanted: str, value: Array) -> str:
        """Add a constant as it is and return its name."""
        name = self._names.fresh(wanted)
        self._constants[name] = np.ascontiguousarray(value).reshape(np.shape(value))
        return name

    def node(self, op_type: str, inputs: Sequence[str], wanted: str, **attributes: OnnxAttribute) -> str:
        """Add a node with a new value and return the value's name."""
        return self._append(op_type, inputs, self._names.fresh(wanted), attributes)

    def write(self, t: int, op_type: str, inputs: Sequence[str], **attributes: OnnxAttribute) -> None:
        """Add the node that computes a tensor of the model, and what quantises it where the model does."""
        affine = self.tensor(t).quantisation
        if not is_quantised(self.tensor(t)) or not isinstance(affine, Affine):
            self._readable[t] = self._append(op_type, inputs, self._values[t], attributes)
            return
        real = self.node(op_type, inputs, f"{self._values[t]}_real", **attributes)
        self.quantise(t, real)

    def quantise(self, t: int, real: str) -> None:
        """Make a tensor of the model from its real value."""
        parameters = self._scale_and_zero_point(t)
        self._append("QuantizeLinear", (real, *parameters), self._values[t], {})

    def alias(self, t: int, value: str) -> None:
        """Let a tensor of the model be a value that is there already, quantised where the model quantises it."""
        if is_quantised(self.tensor(t)):
            self.quantise(t, value)
        else:
            self.write(t, "Identity", [value])

    def read(self, t: int) -> str:
        """Return the real value of a computed tensor in ONNX's layout."""
        if t not in self._readable:
            name = f"{self._values[t]}_dequantised"
            parameters = self._scale_and_zero_point(t)
            self._readable[t] = self.node("DequantizeLinear", (self._values[t], *parameters), name)
        return self._readable[t]

    def read_plain(self, t: int) -> str:
        """Return the real value of a computed tensor in the model's own layout."""
        value = self.read(t)
        if len(self.tensor(t).shape) != 4 or is_same_order(self.tensor(t).shape):
            return value
        return self.node("Transpose", [value], f"{self._values[t]}_nhwc", perm=TO_LAST)

    def read_constant(self, t: int, value: Array, axis: int = 0) -> str:
        """Add a constant tensor of the model, perhaps rearranged, and return its real value.

        Args:
            t: the tensor; says how integers stand for reals.
            value: its elements.
            axis: that the channels of a per-axis quantisation have in `value`.
        """
        tensor = self.tensor(t)
        name = self.constant(self._values[t], value)
        affine = tensor.quantisation
        if not isinstance(affine, Affine) or not tensor.dtype.is_integer:
            return name
        scale = affine.scale.astype(np.float32)
        zero_point = np.broadcast_to(affine.zero_point, scale.shape).astype(tensor.dtype.storage)
        if not affine.is_per_axis:
            scale, zero_point = scale.reshape(()), zero_point.reshape(())
        inputs = [name, self.constant(f"{name}_scale", scale)]
        if tensor.dtype is not DType.INT32:
            inputs.append(self.constant(f"{name}_zero_point", zero_point))
        attributes: dict[str, OnnxAttribute] = {"axis": axis} if affine.is_per_axis else {}
        return self.node("DequantizeLinear", inputs, f"{name}_dequantised", **attributes)

    def finish(self) -> OnnxGraph:
        """Return the graph."""
        inputs = tuple(self._port(t) for t in self.graph.inputs)
        outputs = tuple(self._port(t) for t in self.graph.outputs)
        nodes, constants = tuple(self._nodes), dict(self._constants)
        return OnnxGraph(self.graph.name or "main", nodes, constants, inputs, outputs, self._values)

    def _append(self, op_type: str, inputs: Sequence[str], output: str, attributes: dict[str, OnnxAttribute]) -> str:
        self._nodes.append(OnnxNode(op_type, tuple(inputs), (output,), attributes))
        return output

    def _port(self, t: int) -> OnnxValue:
        tensor = self.tensor(t)
        return OnnxValue(self._values[t], shape_first(tensor.shape), tensor.dtype.storage.name)

    def _scale_and_zero_point(self, t: int) -> tuple[str, str]:
        tensor, name = self.tensor(t), self._values[t]
        if tensor.affine.is_per_axis:
            raise UnsupportedError(f"tensor '{tensor.name}' is quantised per channel; activations have one scale")
        scale = tensor.affine.scale.astype(np.float32).reshape(())
        zero_point = tensor.affine.zero_point.astype(tensor.dtype.storage).reshape(())
        key = f"{name}_scale"
        if key not in self._constants:
            self._constants[key] = scale
            self._constants[f"{name}_zero_point"] = zero_point
        return key, f"{name}_zero_point"


def is_quantised(tensor: Tensor) -> bool:
    """Whether a tensor holds integers that stand for reals."""
    return isinstance(tensor.quantisation, Affine) and tensor.dtype.is_integer


def is_same_order(shape: tuple[int, ...]) -> bool:
    """Whether the elements of [N, H, W, C] come in the same order as those of [N, C, H, W]."""
    return shape[3] == 1 or (shape[1] == 1 and shape[2] == 1)
