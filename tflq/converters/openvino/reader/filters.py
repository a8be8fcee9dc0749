"""Layers with a window or weights: their attributes, and the forms of weights."""

from __future__ import annotations

import numpy as np

from tflq.arrays import Doubles, Singles
from tflq.converters.openvino.ir import Layer, Source
from tflq.converters.openvino.reader.graph import Codes, Reading
from tflq.errors import UnsupportedError
from tflq.graph import Affine, Array, Attributes, FakeQuantize, Node, Tensor
from tflq.graph.attributes import Attribute
from tflq.interpreter.kernels.openvino.levels import affine_of, level_indices, level_values
from tflq.interpreter.operands.sliding_windows import window_of

_Ends = tuple[tuple[int, int], tuple[int, int]]


def window_attributes(reading: Reading, layer: Layer, kernel: tuple[int, int]) -> tuple[int, dict[str, Attribute]]:
    """Return the input with channels last and the attributes; a PAD goes in front where TFLite has no such padding.

    Args:
        reading: the network.
        layer: with strides, pads_begin, pads_end, auto_pad and, for convolutions, dilations.
        kernel: its size.

    Raises:
        ValueError: numbers that are none, or not two of each.
    """
    x = reading.in_last(layer.sources[0])
    strides = pair(layer.data["strides"])
    dilations = pair(layer.data.get("dilations", "1, 1"))
    attributes: dict[str, Attribute] = {
        "stride_h": strides[0],
        "stride_w": strides[1],
        "dilation_h_factor": dilations[0],
        "dilation_w_factor": dilations[1],
        "padding": "valid",
        "fused_activation_function": "none",
    }
    if min(*strides, *dilations, *kernel) < 1:
        raise ValueError(f"strides {strides}, dilations {dilations}, kernel {kernel}; all are 1 or more")
    ends = _ends(layer, _size(reading, layer.sources[0]), attributes, kernel)
    if ends == ((0, 0), (0, 0)):
        return x, attributes
    if ends == _same(_size(reading, layer.sources[0]), attributes, kernel):
        return x, {**attributes, "padding": "same"}
    return _padded(reading, layer, x, ends), attributes


def pair(text: str) -> tuple[int, int]:
    """Return two whole numbers."""
    parts = [int(part) for part in text.split(",")]
    if len(parts) != 2 or max(map(abs, parts)) >= 1 << 31:
        raise ValueError(f"'{text[:40]}' has {len(parts)} numbers; 2 small ones are needed")
    return parts[0], parts[1]


def _size(reading: Reading, source: Source) -> tuple[int, int]:
    shape = reading.shape(source)
    return shape[2], shape[3]


def _ends(layer: Layer, size: tuple[int, int], attributes: dict[str, Attribute], kernel: tuple[int, int]) -> _Ends:
    kind = layer.data.get("auto_pad", "explicit")
    if kind == "valid":
        return ((0, 0), (0, 0))
    if kind == "same_upper":
        return _same(size, attributes, kernel)
    if kind == "same_lower":
        (top, bottom), (left, right) = _same(size, attributes, kernel)
        return ((bottom, top), (right, left))
    if kind not in ("explicit", "notset"):
        raise ValueError(f"auto_pad '{kind[:20]}'; known are explicit, notset, same_upper, same_lower, valid")
    begin, end = pair(layer.data["pads_begin"]), pair(layer.data["pads_end"])
    if min(*begin, *end) < 0:
        raise ValueError(f"pads {begin} and {end}; they are 0 or more")
    return ((begin[0], end[0]), (begin[1], end[1]))


def _same(size: tuple[int, int], attributes: dict[str, Attribute], kernel: tuple[int, int]) -> _Ends:
    window = window_of(Attributes({**attributes, "padding": "same"}), size, kernel)
    return ((window.top, window.bottom), (window.left, window.right))


def _padded(reading: Reading, layer: Layer, x: int, ends: _Ends) -> int:
    tensor = reading.graph.tensors[x]
    amounts = np.array([(0, 0), *ends, (0, 0)], np.int32)
    n, h, w, c = tensor.shape
    shape = (n, h + sum(ends[0]), w + sum(ends[1]), c)
    t = reading.graph.add_tensor(Tensor(f"{layer.name}/padded", shape, tensor.dtype))
    inputs = (x, reading.add_constant(f"{layer.name}/pads", amounts))
    reading.graph.nodes.append(Node("pad", inputs, (t,), name=f"{layer.name}/pad"))
    return t


def average_pool(reading: Reading, layer: Layer, source: Source) -> None:
    """AvgPool that does not count padding."""
    padded = layer.data.get("pads_begin", "0, 0"), layer.data.get("pads_end", "0, 0")
    has_padding = any(pair(p) != (0, 0) for p in padded) or layer.data.get("auto_pad", "").startswith("same")
    if has_padding and layer.data.get("exclude-pad", "false") != "true":
        raise UnsupportedError("padding that counts as zeros (exclude-pad=false); exclude-pad=true is read")
    _pool(reading, layer, source, "average_pool_2d")


def max_pool(reading: Reading, layer: Layer, source: Source) -> None:
    """MaxPool of opset 1."""
    _pool(reading, layer, source, "max_pool_2d")


def _pool(reading: Reading, layer: Layer, source: Source, operator: str) -> None:
    if layer.data.get("rounding_type", "floor") != "floor":
        raise UnsupportedError(f"rounding_type {layer.data['rounding_type'][:20]}; floor is read")
    kernel = pair(layer.data["kernel"])
    x, attributes = window_attributes(reading, layer, kernel)
    if reading.graph.tensors[x].name.endswith("/padded"):
        raise UnsupportedError("padding that is neither same_upper nor none; pools of TFLite have these")
    size: dict[str, Attribute] = {"filter_height": kernel[0], "filter_width": kernel[1]}
    reading.add(operator, [x], source, True, attributes={**attributes, **size})


def convolution(reading: Reading, layer: Layer, source: Source) -> None:
    """Convolution, weights [O, I, KH, KW] -> CONV_2D with [O, KH, KW, I]."""
    shape = reading.shape(layer.sources[1])
    if len(shape) != 4:
        raise UnsupportedError(f"weights of {len(shape)} axes; convolutions of images are read")
    weights = _weights(reading, layer, shape, (0, 2, 3, 1), 0)
    _window(reading, layer, source, "conv_2d", weights, (shape[2], shape[3]))


def group_convolution(reading: Reading, layer: Layer, source: Source) -> None:
    """GroupConvolution, weights [G, O/G, I/G, KH, KW] -> DEPTHWISE_CONV_2D, or CONV_2D of fewer channels."""
    shape = reading.shape(layer.sources[1])
    if len(shape) != 5:
        raise UnsupportedError(f"weights of {len(shape)} axes; convolutions of images are read")
    groups, each, depth, height, width = shape
    rows = (groups * each, depth, height, width)
    if depth == 1 and groups > 1:
        weights = _weights(reading, layer, rows, (1, 2, 3, 0), 3)
        _window(reading, layer, source, "depthwise_conv_2d", weights, (height, width), depth_multiplier=each)
    else:
        weights = _weights(reading, layer, rows, (0, 2, 3, 1), 0)
        _window(reading, layer, source, "conv_2d", weights, (height, width))


def matmul(reading: Reading, layer: Layer, source: Source) -> None:
    """MatMul with constant weights -> FULLY_CONNECTED with [O, K]."""
    x, weights = layer.sources
    shape = reading.shape(weights)
    if not reading.is_constant(weights) or len(shape) != 2 or layer.data.get("transpose_a", "false") != "false":
        raise UnsupportedError("a product of two computed values, or of transposed ones; constant weights are read")
    is_transposed = layer.data.get("transpose_b", "false") == "true"
    laid = _weights(reading, layer, shape, (0, 1) if is_transposed else (1, 0), 0, 0 if is_transposed else 1)
    keep = len(reading.shape(x)) != 2
    reading.add("fully_connected", [reading.in_plain(x), laid], source, attributes={"keep_num_dims": keep})


def quantized_constant(reading: Reading, source: Source, value: Array, rule: FakeQuantize) -> None:
    """FakeQuantize of a constant: quantized values where it is symmetric, else the values of its levels."""
    flat = [np.asarray(bound, np.float32) for bound in (rule.output_low, rule.output_high)]
    affine = affine_of(FakeQuantize(rule.levels, *(f.reshape(-1) for f in flat), *(f.reshape(-1) for f in flat)))
    index = level_indices(np.asarray(value, np.float32), rule)
    if affine is None or affine.bits > 8 or affine.zero_point.any():
        reading.constants[source] = level_values(index, rule)
        return
    largest = max((f for f in flat), key=lambda f: f.size)
    codes = (index + np.float32(affine.minimum_code)).astype(np.int8)
    scale = affine.scale.reshape(largest.shape).astype(np.float32)
    reading.compressed[source] = Codes(codes, np.zeros((), np.float32), scale)


def _window(
    reading: Reading,
    layer: Layer,
    source: Source,
    operator: str,
    weights: int,
    kernel: tuple[int, int],
    **more: int,
) -> None:
    x, attributes = window_attributes(reading, layer, kernel)
    reading.add(operator, [x, weights], source, True, attributes={**attributes, **more})


def _weights(
    reading: Reading,
    layer: Layer,
    rows: tuple[int, ...],
    order: tuple[int, ...],
    axis: int,
    channel_axis: int = 0,
) -> int:
    """Return the tensor of weights: quantized values behind a Dequantize, or float32.

    Zero points are taken off where int8 holds what is left; they stay where there is one for all or one a channel.

    Args:
        reading: the network.
        layer: whose second input they are.
        rows: shape to see them in first, groups and their outputs as one axis.
        order: axes of `rows` in our layout.
        axis: of the output channels in our layout.
        channel_axis: of the output channels in `rows`.
    """
    source, channels = layer.sources[1], rows[channel_axis]
    found = reading.compressed.get(source)
    if found is None or found.scale is None or not _is_kept(found, channels):
        return reading.add_constant(f"{layer.name}/weights", reading.constant(source).reshape(rows).transpose(order))
    codes, zeros = signed(found)
    zero_point = zeros.astype(np.int64)
    scale = _scales(found, channels)
    count = max(scale.size, zero_point.size)
    affine = Affine(
        np.broadcast_to(scale, count), np.broadcast_to(zero_point.reshape(-1), count), axis if count > 1 else None
    )
    return reading.weights(source, codes.reshape(rows).transpose(order), affine)


def _is_kept(found: Codes, channels: int) -> bool:
    """Whether zero points are whole and, where they stay, of int8, and one for all or one a channel."""
    given = found.zero_point
    if not np.array_equal(given, np.rint(given)):
        return False
    scales = 1 if found.scale is None else found.scale.size
    left = signed(found)[1]
    is_int8 = left.min() >= -128 and left.max() <= 127
    return not left.any() or bool(is_int8 and {given.size, scales} <= {1, channels})


def signed(found: Codes) -> tuple[Doubles, Doubles]:
    """Return signed quantized values and zero points: 0 where int8 holds what is left without them."""
    codes, zero_point = found.codes.astype(np.float64), found.zero_point.astype(np.float64)
    left = codes - zero_point
    if not left.size or (left.min() >= -128 and left.max() <= 127):
        return left, np.zeros(1)
    top = 128 if found.codes.dtype == np.uint8 else 0
    return codes - top, zero_point - top


def _scales(found: Codes, channels: int) -> Singles:
    assert found.scale is not None
    if found.scale.size not in (1, channels):
        raise UnsupportedError(f"scales of shape {found.scale.shape}; one, or one a channel ({channels}), is read")
    bad = ~(np.isfinite(found.scale) & (found.scale > 0))
    if bad.any():
        raise ValueError(f"weights have scale {found.scale[bad][0]}; scales are positive and finite")
    return np.ascontiguousarray(found.scale, np.float32).reshape(-1)
