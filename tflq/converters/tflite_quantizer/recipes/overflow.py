"""Weights with larger scales, for channels with a bias of more than 32 bits.

ai-edge-quantizer casts such a bias to int32, which results in -2^31 on x86-64, for a positive bias too. A channel of
zeros is enough, since its scale is 1e-9 / 127.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.arrays import Singles
from tflq.converters.passes.rewrite import constant
from tflq.converters.tflite_quantizer.rules import RULES
from tflq.graph import ABSENT, Affine, DType, Graph, Node, Tensor

LARGER = "scales of weights grown, since the bias needs more than 32 bits; ai-edge-quantizer lets it overflow"


def grow_scales(graph: Graph, node: Node, source: Graph, original: Node) -> Node:
    """Return a node of which every bias fits: the scale of such a channel is |bias| / (2^30 input scale).

    Args:
        graph: Quantized graph; new constants are added to it.
        node: Node with quantized weights and bias.
        source: Float network.
        original: The same node in it.
    """
    rule = RULES[node.operator].filter if node.operator in RULES else None
    if rule is None or rule.bias >= len(node.inputs) or node.inputs[rule.bias] == ABSENT:
        return node
    weights, bias = graph.tensors[node.inputs[rule.weights]], graph.tensors[node.inputs[rule.bias]]
    input_ = graph.tensors[node.inputs[2 if node.operator == "transpose_conv" else 0]].quantization
    if bias.dtype not in (DType.INT32, DType.INT64) or not isinstance(input_, Affine):
        return node
    reals, biases = (np.asarray(source.tensors[original.inputs[p]].data, np.float32) for p in (rule.weights, rule.bias))
    scale, input_scale = weights.affine.scale.astype(np.float32), input_.scale.astype(np.float32)
    too_large = np.abs(biases / (input_scale * scale)) >= 2.0**31
    if not too_large.any():
        return node
    needed = np.where(too_large, np.abs(biases) / (input_scale * np.float32(2.0**30)), np.float32(0))
    larger = np.maximum(scale, needed if scale.size > 1 else needed.max(keepdims=True)).astype(np.float32)
    inputs = list(node.inputs)
    inputs[rule.weights] = graph.add_tensor(_rescale(weights, reals, larger))
    inputs[rule.bias] = graph.add_tensor(_rescale(bias, biases, input_scale * larger))
    return replace(node, inputs=tuple(inputs))


def _rescale(tensor: Tensor, reals: Singles, scale: Singles) -> Tensor:
    """Return a constant with clip(rint(reals / scale)) in the channels with another scale.

    From 8 bits on the smallest integer is not used.
    """
    affine = tensor.affine
    axis = affine.axis if scale.size > 1 else None
    shape = [1] * reals.ndim
    if axis is not None:
        shape[axis] = -1
    # A bias of int64 has 32 bits in use.
    largest = 2 ** (min(affine.bits, 32) - 1) - 1
    smallest = -largest - (affine.bits < 8)
    rounded = np.clip(np.rint(reals / scale.reshape(shape)), smallest, largest)
    changed = np.broadcast_to((scale != affine.scale.astype(np.float32)).reshape(shape), reals.shape)
    data = np.where(changed, rounded.astype(np.asarray(tensor.data).dtype), np.asarray(tensor.data))
    grown = Affine(scale, affine.zero_point, axis, affine.bits)
    return replace(constant(tensor.name, data, grown, tensor.dtype), has_rank=tensor.has_rank)
