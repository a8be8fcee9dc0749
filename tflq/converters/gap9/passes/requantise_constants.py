"""Weights, biases and constant operands in GAP9's types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tflq.converters.gap9.affine_types import data_range, file_range, repaired, symmetric
from tflq.converters.gap9.options import LayerOptions
from tflq.converters.gap9.passes.choose_engines import NE16
from tflq.converters.gap9.rewrite import FILTERS, layer_of, with_attributes
from tflq.converters.gap9.weights import FilterConstants, quantise_filter
from tflq.errors import OptionError
from tflq.graph import ABSENT, Affine, DType, Graph, Node, Tensor
from tflq.graph.quantisation import FloatArray
from tflq.interpreter.kernels.gap9.rounding import dequantise, quantise

_SMALLEST_SCALE = 1e-6
_ELEMENTWISE = ("add", "sub", "mul")
_JOINING = ("concatenation", "pack")


def requantise_constants(graph: Graph, options: Mapping[str, LayerOptions]) -> Graph:
    """Return the graph with new constants; inputs have their types already.

    Raises:
        OptionError: weight_bits below 8 for a layer that runs on SQ8, or for a graph without a layer on NE16.
    """
    _refuse_narrow_weights(graph, options)
    result = graph.copy()
    for index, node in enumerate(graph.nodes):
        if node.operator in FILTERS:
            _filter(result, index, options[layer_of(node)])
        elif node.operator in _ELEMENTWISE:
            _operands(result, index)
            if node.operator == "sub":
                result.nodes[index] = with_attributes(result.nodes[index], sub=options[layer_of(node)].sub)
        elif node.operator in _JOINING:
            _joined_constants(result, index)
    return result


def weight_axis(node: Node) -> int:
    """Return the axis of the output channels in TFLite's layout of a filter's weights."""
    return 3 if node.operator == "depthwise_conv_2d" else 0


def real_constant(tensor: Tensor) -> FloatArray:
    """Return a constant's real values: float64 from integers, float32 where it is stored so."""
    assert tensor.data is not None
    if isinstance(tensor.quantisation, Affine) and tensor.dtype.is_integer:
        return dequantise(tensor.data, tensor.quantisation)
    return np.asarray(tensor.data, np.float32)


def quantise_layer(graph: Graph, node: Node, input_scale: FloatArray, options: LayerOptions) -> FilterConstants:
    """Return the constants of a filter for a scale of its input."""
    weights = graph.tensors[node.inputs[1]]
    has_bias = len(node.inputs) > 2 and node.inputs[2] != ABSENT
    bias = real_constant(graph.tensors[node.inputs[2]]) if has_bias else None
    on_ne16 = node.attributes.text("engine") == NE16
    return quantise_filter(
        _real_weights(weights), bias, input_scale, weight_axis(node), _weight_bits(weights, options, on_ne16), on_ne16
    )


def _weight_bits(weights: Tensor, options: LayerOptions, on_ne16: bool) -> int:
    """The file's width is an upper bound, but for a layer that was named."""
    if not on_ne16:
        return 8
    stored = min(weights.affine.bits, 8) if isinstance(weights.quantisation, Affine) else 8
    return options.weight_bits if options.weight_bits_asked else min(stored, options.weight_bits)


def _real_weights(weights: Tensor) -> FloatArray:
    """Return real weights; channels of scale below 1e-6 are 0 where the file's weights are asymmetric or per tensor."""
    real = real_constant(weights)
    if isinstance(weights.quantisation, Affine) and weights.dtype.is_integer:
        q = weights.quantisation
        if not q.is_per_axis or q.zero_point.any():
            scale, _ = q.along(real.ndim)
            real = np.where(scale < _SMALLEST_SCALE, real.dtype.type(0), real)
    return real


def _refuse_narrow_weights(graph: Graph, options: Mapping[str, LayerOptions]) -> None:
    """A layer that falls back to SQ8 keeps 8 bits, unless it was named, or no layer takes what was asked for."""
    filters = [(i, n) for i, n in enumerate(graph.nodes) if n.operator in FILTERS]
    nowhere = not any(n.attributes.text("engine") == NE16 for _, n in filters)
    for index, node in filters:
        found = options[layer_of(node)]
        named = found.weight_bits_asked or nowhere
        if found.weight_bits < 8 and named and node.attributes.text("engine") != NE16:
            raise OptionError(
                f"{graph.where(index)}: weight_bits={found.weight_bits} on a layer that runs on SQ8 "
                f"({node.attributes.text('engine_reason')}); SQ8 takes 8: set use_ne16=true or weight_bits=8 for it"
            )


def _filter(graph: Graph, index: int, options: LayerOptions) -> None:
    node = graph.nodes[index]
    made = quantise_layer(graph, node, graph.tensors[node.inputs[0]].affine.scale, options)
    weights = graph.tensors[node.inputs[1]]
    dtype = DType.of(made.codes.dtype)
    made.codes.setflags(write=False)
    w = graph.add_tensor(Tensor(weights.name, weights.shape, dtype, made.weights, data=made.codes))
    b = graph.add_tensor(_bias_tensor(graph, node, made))
    graph.nodes[index] = replace(with_attributes(node, guarded_channels=made.guarded), inputs=(node.inputs[0], w, b))


def _bias_tensor(graph: Graph, node: Node, made: FilterConstants) -> Tensor:
    given = len(node.inputs) > 2 and node.inputs[2] != ABSENT
    name = graph.tensors[node.inputs[2]].name if given else f"{node.name}_bias"
    affine = Affine(made.bias_scale, np.zeros(1, np.int64), 0, 32, True)
    data = made.bias.astype(np.int32)
    data.setflags(write=False)
    return Tensor(name, data.shape, DType.INT32, affine, data=data)


def _operands(graph: Graph, index: int) -> None:
    """Constant operands: NE16's Add keeps the file's codes; all others are int8 symmetric on the constant's range."""
    node = graph.nodes[index]
    for position, t in enumerate(node.inputs):
        tensor = graph.tensors[t]
        keeps = node.attributes.text("engine") == NE16 and isinstance(tensor.quantisation, Affine)
        if not tensor.is_constant or keeps:
            continue
        real = real_constant(tensor)
        stated = file_range(tensor)
        affine = symmetric(repaired(stated) if stated is not None else data_range(real))
        data = quantise(real, affine).astype(np.int8)
        data.setflags(write=False)
        new = graph.add_tensor(Tensor(tensor.name, data.shape, DType.INT8, affine, tensor.range, data))
        changed = tuple(new if p == position else old for p, old in enumerate(graph.nodes[index].inputs))
        graph.nodes[index] = replace(graph.nodes[index], inputs=changed)


def _joined_constants(graph: Graph, index: int) -> None:
    """Constants that are joined with computed tensors take the type of the result."""
    node = graph.nodes[index]
    result = graph.tensors[node.outputs[0]]
    inputs = list(node.inputs)
    for position, t in enumerate(inputs):
        tensor = graph.tensors[t]
        if tensor.is_constant:
            data = quantise(real_constant(tensor), result.affine).astype(result.dtype.storage)
            data.setflags(write=False)
            inputs[position] = graph.add_tensor(Tensor(tensor.name, data.shape, result.dtype, result.affine, data=data))
    graph.nodes[index] = replace(node, inputs=tuple(inputs))
