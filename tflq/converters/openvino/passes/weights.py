"""Weights as signed codes: the file's own where they can be written so, else quantized here.

`insert` makes the network that the IR has: FakeQuantize nodes, weights as quantized values behind a Dequantize.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.arrays import Reals
from tflq.converters.openvino.options import INT8, LayerOptions
from tflq.converters.openvino.passes import ARITHMETIC, FILTERS
from tflq.converters.openvino.passes.ranges import Rules, is_on_codes
from tflq.converters.passes.rewrite import channel_bounds, channel_maxima, constant
from tflq.converters.settings import Options
from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Affine, Array, DType, Graph, Node, Tensor
from tflq.graph.operators import row_of


def weight_codes(source: Tensor, real: Tensor, channel_axis: int, layer: LayerOptions) -> Tensor:
    """Return constant weights as quantized values, with zero points of 0 unless weight_scheme is asymmetric.

    Quantized values of a file stay what they are, its zero points taken off: uint8 with 128 becomes int8. Else, for
    each output channel or for all: S = max|w| / (2^(bits-1) - 1), q = round half even(w / S). Channels of zeros get S =
    1. Asymmetric: the file's zero points stay; else low = min(w, 0), high = max(w, 0), S = (high - low) / (2^bits - 1),
    Z = round half even(-low / S) - 2^(bits-1), q = round half even(w / S) + Z.

    Args:
        source: as the file has it.
        real: float32.
        channel_axis: of the output channels.
        layer: bits, granularity and scheme.

    Raises:
        UnsupportedError: symmetric ones of a file without their zero points leave int8.
        GraphError: weights that are computed at run time or not finite; a scale that is not positive and finite.
    """
    if real.data is None:
        raise UnsupportedError(f"weights '{real.name}' are computed at run time; the runtime's int8 needs constants")
    affine = source.quantization
    if isinstance(affine, Affine) and source.data is not None and affine.bits <= layer.weight_bits:
        return _own(source, source.data, affine, layer.asymmetric_weights)
    values = np.asarray(real.data, np.float64)
    if not np.isfinite(values).all():
        found = np.argwhere(~np.isfinite(values))[0]
        place = tuple(int(i) for i in found)
        raise GraphError(f"weights '{real.name}' are {values[place]} at {place}; weights are finite")
    return _quantized(real, values, channel_axis, layer)


def _own(source: Tensor, data: Array, affine: Affine, is_asymmetric: bool) -> Tensor:
    bad = ~(np.isfinite(affine.scale) & (affine.scale > 0))
    if bad.any():
        raise GraphError(
            f"weights '{source.name}' have scale {affine.scale[bad][0]} in channel {int(np.argmax(bad))}; scales are "
            f"positive and finite"
        )
    _, zero_point = affine.along(data.ndim)
    count, axis = affine.scale.size, affine.axis if affine.scale.size > 1 else None
    if is_asymmetric and zero_point.any():
        top = 0 if affine.signed else 1 << (affine.bits - 1)  # unsigned codes are written as signed ones
        kept = Affine(affine.scale, np.broadcast_to(affine.zero_point, count) - top, axis, 8)
        return _constant(source.name, data.astype(np.int64) - top, kept)
    codes = data.astype(np.int64) - zero_point
    if codes.size and (codes.min() < -128 or codes.max() > 127):
        raise UnsupportedError(
            f"weights '{source.name}' are asymmetric: without zero point they reach {codes.min()}..{codes.max()}, "
            f"beyond int8, and OpenVINO's CPU plug-in executes weights with zero points in f32; keep them so "
            f"(weight_scheme=asymmetric), convert the float model, or leave the layer float (precision=float)"
        )
    return _constant(source.name, codes, Affine(affine.scale, np.zeros(count, np.int64), axis, 8))


def _quantized(real: Tensor, values: Reals, channel_axis: int, layer: LayerOptions) -> Tensor:
    axis, top = channel_axis if layer.per_channel else None, (1 << (layer.weight_bits - 1)) - 1
    if layer.asymmetric_weights:
        low, high = channel_bounds(values, axis)
        scale = _steps(high - low, 2 * top + 1)
        zero_point = np.rint(-low / scale).astype(np.int64) - top - 1
    else:
        scale = _steps(channel_maxima(values, axis), top)
        zero_point = np.zeros(scale.size, np.int64)
    affine = Affine(scale, zero_point, channel_axis if scale.size > 1 else None, layer.weight_bits)
    wide, zeros = affine.along(values.ndim)
    codes = np.clip(np.rint(values / wide.astype(np.float64)) + zeros, -top - 1, top)
    return _constant(real.name, codes, affine)


def _steps(extent: Reals, count: int) -> Reals:
    """Return float32 scales; one where all weights are zero, and never below the smallest normal float32."""
    scale = np.where(extent > 0, extent / count, 1.0).astype(np.float32)
    return np.asarray(np.maximum(scale, np.finfo(np.float32).tiny))


def _constant(name: str, codes: Array, affine: Affine) -> Tensor:
    return constant(name, codes.astype(np.int8), affine, DType.INT4 if affine.bits == 4 else DType.INT8)


def insert(network: Graph, source: Graph, rules: Rules, options: Options[LayerOptions]) -> Graph:
    """Return the network with a FakeQuantize behind each tensor that has a rule; who reads the tensor reads its levels.

    The levels get the tensor's name; the reals in front of them are called name/real.

    Raises:
        UnsupportedError, GraphError: as `weight_codes`, with the operator.
    """
    result = replace(network, tensors=list(network.tensors), nodes=[])
    levels: dict[int, int] = {}
    for t in network.inputs:
        _quantize(result, t, rules, levels)
    for index, node in enumerate(network.nodes):
        inputs = [levels.get(t, t) for t in node.inputs]
        if node.operator in FILTERS and is_on_codes(node, options):
            layer = options.of(node.name)
            try:
                inputs[1] = _weights(result, source, node, layer)
            except (UnsupportedError, GraphError) as error:
                raise type(error)(f"{network.where(index)}: {error}") from None
        result.nodes.append(replace(node, inputs=tuple(inputs)))
        for t in node.outputs:
            _quantize(result, t, rules, levels)
    result.outputs = tuple(levels.get(t, t) if options.whole.output == INT8 else t for t in network.outputs)
    return result


def _quantize(result: Graph, t: int, rules: Rules, levels: dict[int, int]) -> None:
    rule, tensor = rules.get(t), result.tensors[t]
    if rule is None:
        return
    levels[t] = result.add_tensor(replace(tensor, quantization=rule))
    result.tensors[t] = replace(tensor, name=f"{tensor.name}/real")
    name = f"{tensor.name}/fake_quantize"
    result.nodes.append(Node("fake_quantize", (t,), (levels[t],), name=name, arithmetic=ARITHMETIC))


def _weights(result: Graph, source: Graph, node: Node, layer: LayerOptions) -> int:
    t = node.inputs[1]
    real = result.tensors[t]
    codes = weight_codes(
        source.tensors[t] if t < len(source.tensors) else real, real, row_of(node).channel_axis or 0, layer
    )
    stored = result.add_tensor(codes)
    out = result.add_tensor(replace(real, data=None))
    name = f"{node.name}/weights"
    result.nodes.append(Node("dequantize", (stored,), (out,), name=name, arithmetic=ARITHMETIC))
    return out
