"""A graph's float view: the same operators on real numbers, next to the integer view that the file states."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.errors import GraphError
from tflq.graph.dtypes import DType
from tflq.graph.graph import ABSENT, Array, Graph, Node, Tensor
from tflq.graph.quantisation import Affine

_CONVERSIONS = ("quantize", "dequantize")


def float_view(graph: Graph) -> Graph:
    """Return the graph with float32 in place of every affine-quantised tensor.

    Constants are dequantised: real = scale * (q - zero_point), computed in float64 and rounded to float32 once.
    QUANTIZE and DEQUANTIZE have nothing left to do and go: who read their output reads their input. Tensors keep their
    indices, and their ranges; tensors without a quantisation (shapes, indices, floats) stay as they are.

    Raises:
        GraphError: a constant whose scales do not fit its shape.
    """
    tensors = [_float_tensor(tensor) for tensor in graph.tensors]
    source: dict[int, int] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        inputs = tuple(source.get(t, t) if t != ABSENT else t for t in node.inputs)
        if node.operator in _CONVERSIONS and _is_identity(tensors, inputs[0], node.outputs[0]):
            source[node.outputs[0]] = inputs[0]
        else:
            nodes.append(replace(node, inputs=inputs, arithmetic=None, integers=None))
    outputs = tuple(source.get(t, t) for t in graph.outputs)
    return replace(graph, tensors=tensors, nodes=nodes, outputs=outputs)


def dequantise(codes: Array, quantisation: Affine) -> Array:
    """Return scale * (q - zero_point): float64[shape] of integer codes [shape], per tensor or along the axis.

    Raises:
        GraphError: the number of scales is not the size of the axis.
    """
    axis, count = quantisation.axis, quantisation.scale.size
    if quantisation.is_per_axis and (axis is None or axis >= codes.ndim or codes.shape[axis] != count):
        raise GraphError(f"{count} scales along axis {axis} do not fit a tensor of shape {codes.shape}")
    scale, zero_point = quantisation.along(codes.ndim)
    return np.asarray((codes.astype(np.int64) - zero_point) * scale.astype(np.float64))


def _float_tensor(tensor: Tensor) -> Tensor:
    if not isinstance(tensor.quantisation, Affine) or not tensor.dtype.is_integer:
        return tensor
    if tensor.data is None:
        return replace(tensor, dtype=DType.FLOAT32, quantisation=None)
    try:
        data = dequantise(tensor.data, tensor.quantisation).astype(np.float32)
    except GraphError as error:
        raise GraphError(f"tensor '{tensor.name}': {error}") from None
    data.setflags(write=False)
    return replace(tensor, dtype=DType.FLOAT32, quantisation=None, data=data)


def _is_identity(tensors: list[Tensor], source: int, target: int) -> bool:
    return tensors[source].dtype is DType.FLOAT32 and tensors[target].dtype is DType.FLOAT32
