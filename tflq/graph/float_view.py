"""Real numbers: those of integer constants, and a graph's float view, the same operators next to the integer view."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.arrays import Array, Doubles
from tflq.errors import GraphError
from tflq.graph.dtypes import DType
from tflq.graph.graph import ABSENT, Graph, Node, Tensor
from tflq.graph.operators import Trait, has_trait, row_of
from tflq.graph.quantization import Affine, Blockwise

_OF_REALS = ("aipu_float",)
"""Arithmetics of operators that no other arithmetic of real numbers has: their nodes keep them."""

_BIAS_TYPES = (DType.INT32, DType.INT64)


def float_view(graph: Graph) -> Graph:
    """Return the graph with float32 in place of every quantized tensor, affine or in blocks.

    Constants are dequantized: real = scale * (q - zero_point), computed in float64 and rounded to float32 once. A bias
    without a scale has S_input * S_weights. QUANTIZE, DEQUANTIZE and FAKE_QUANT have nothing left to do and go: who
    reads their output reads their input. Tensors keep their indices, and their ranges; tensors without a quantization
    (shapes, indices, floats) stay as they are.

    Raises:
        GraphError: a constant whose scales do not fit its shape.
    """
    scaled = _with_scaled_biases(graph)
    tensors = [_float_tensor(scaled, tensor) for tensor in scaled.tensors]
    source: dict[int, int] = {}
    nodes: list[Node] = []
    for node in scaled.nodes:
        inputs = tuple(source.get(t, t) if t != ABSENT else t for t in node.inputs)
        if has_trait(node, Trait.CONVERSION) and _is_identity(tensors, inputs[0], node.outputs[0]):
            source[node.outputs[0]] = inputs[0]
        else:
            arithmetic = node.arithmetic if node.arithmetic in _OF_REALS else None
            nodes.append(replace(node, inputs=inputs, arithmetic=arithmetic, params=None))
    outputs = tuple(source.get(t, t) for t in graph.outputs)
    return replace(graph, tensors=tensors, nodes=nodes, outputs=outputs)


def _with_scaled_biases(graph: Graph) -> Graph:
    """Give biases without a scale that of their accumulator; one that several nodes share becomes one for each."""
    scaled, done = graph.copy(), set[int]()
    for i, node in enumerate(graph.nodes):
        position, affine = _missing_scale(graph, node)
        if affine is None:
            continue
        t = node.inputs[position]
        tensor = replace(graph.tensors[t], quantization=affine)
        if t not in done:
            scaled.tensors[t] = tensor
            done.add(t)
        elif scaled.tensors[t] != tensor:
            own = scaled.add_tensor(tensor)
            inputs = tuple(own if p == position else other for p, other in enumerate(node.inputs))
            scaled.nodes[i] = replace(node, inputs=inputs)
    return scaled


def _missing_scale(graph: Graph, node: Node) -> tuple[int, Affine | None]:
    """Return the position of a bias, and S_input * S_weights where it has no scale of its own."""
    row = row_of(node)
    if row.bias is None or row.weights is None or len(node.inputs) <= row.bias or node.inputs[row.bias] == ABSENT:
        return 0, None
    source, weights, bias = (graph.tensors[node.inputs[p]] for p in (row.data, row.weights, row.bias))
    if bias.data is None or bias.quantization is not None or bias.dtype not in _BIAS_TYPES:
        return row.bias, None
    x, w = source.quantization, weights.quantization
    if not isinstance(x, Affine) or not isinstance(w, Affine):
        return row.bias, None
    scale = x.scale.astype(np.float64) * w.scale.astype(np.float64)
    return row.bias, Affine(scale, np.zeros(scale.size, np.int64), 0, bias.dtype.bits)


def _float_tensor(graph: Graph, tensor: Tensor) -> Tensor:
    quantization = tensor.quantization
    if not isinstance(quantization, (Affine, Blockwise)) or not tensor.dtype.is_integer:
        return tensor
    if tensor.data is None:
        return replace(tensor, dtype=DType.FLOAT32, quantization=None)
    try:
        if isinstance(quantization, Affine):
            data = dequantize(tensor.data, quantization).astype(np.float32)
        else:
            data = dequantize_blocks(graph, tensor.data, quantization).astype(np.float32)
    except GraphError as error:
        raise GraphError(f"tensor '{tensor.name}': {error}") from None
    data.setflags(write=False)
    return replace(tensor, dtype=DType.FLOAT32, quantization=None, data=data)


def _is_identity(tensors: list[Tensor], source: int, target: int) -> bool:
    return tensors[source].dtype is DType.FLOAT32 and tensors[target].dtype is DType.FLOAT32


def dequantize(codes: Array, quantization: Affine) -> Array:
    """Return scale * (q - zero_point): float64[shape] of integer quantized values [shape].

    Per tensor or along the axis.

    Raises:
        GraphError: the number of scales is not the size of the axis.
    """
    axis, count = quantization.axis, quantization.scale.size
    if quantization.is_per_axis and (axis is None or axis >= codes.ndim or codes.shape[axis] != count):
        raise GraphError(f"{count} scales along axis {axis} do not fit a tensor of shape {codes.shape}")
    scale, zero_point = quantization.along(codes.ndim)
    return np.asarray((codes.astype(np.int64) - zero_point) * scale.astype(np.float64))


def dequantize_blocks(graph: Graph, codes: Array, blocks: Blockwise) -> Array:
    """Return scale[block] * (q - zero_point[block]): float64[..., K] of integer quantized values [..., K].

    Scales are the values of another tensor of the graph, [..., K / block_size]; so are zero points, which are 0 where
    that tensor is no constant (files name none by -1 or by 0).

    Raises:
        GraphError: the scales are no constant, or do not fit the quantized values.
    """
    if blocks.block_shape:
        raise GraphError(f"blocks of shape {blocks.block_shape}; blocks along the last axis are known")
    scales = graph.tensors[blocks.scales]
    if scales.data is None:
        raise GraphError(f"its scales, tensor '{scales.name}', are no constant")
    scale = _of_each(scales, scales.data.astype(np.float64), codes.shape, blocks.block_size)
    zero_points = graph.tensors[blocks.zero_points] if blocks.zero_points >= 0 else None
    if zero_points is None or zero_points.data is None or not zero_points.dtype.is_integer:
        return np.asarray(codes.astype(np.float64) * scale)
    shift = _of_each(zero_points, zero_points.data.astype(np.float64), codes.shape, blocks.block_size)
    return np.asarray((codes.astype(np.float64) - shift) * scale)


def _of_each(tensor: Tensor, values: Doubles, shape: tuple[int, ...], block_size: int) -> Doubles:
    """Repeat one value a block for each element of the block."""
    length = shape[-1] if shape else 1
    wanted = int(np.prod(shape[:-1], dtype=np.int64)) * (length // block_size)
    if length % block_size or values.size != wanted:
        raise GraphError(
            f"blocks of {block_size} along the last axis of {shape} do not fit '{tensor.name}', which has shape "
            f"{tensor.shape}"
        )
    return np.repeat(values.reshape(*shape[:-1], length // block_size), block_size, axis=-1)
