"""Windows of convolutions and pools: strides, dilations and padding of an IR as TFLite's attributes."""

from __future__ import annotations

import numpy as np

from tflq.converters.openvino.ir import Layer, Source
from tflq.converters.openvino.reader.graph import Reading
from tflq.graph import Attributes, Node, Tensor
from tflq.graph.attributes import Attribute
from tflq.interpreter.accumulate import window_of

_Ends = tuple[tuple[int, int], tuple[int, int]]


def window_attributes(
    reading: Reading, layer: Layer, kernel: tuple[int, int], fill: float = 0.0
) -> tuple[int, dict[str, Attribute]]:
    """Return the input with channels last and the attributes; a PAD goes in front where TFLite has no such padding.

    Args:
        reading: the network.
        layer: with strides, pads_begin, pads_end, auto_pad and, for convolutions, dilations.
        kernel: its size.
        fill: what stands outside the image.

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
    return _padded(reading, layer, x, ends, fill), attributes


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


def _padded(reading: Reading, layer: Layer, x: int, ends: _Ends, fill: float) -> int:
    tensor = reading.graph.tensors[x]
    amounts = np.array([(0, 0), *ends, (0, 0)], np.int32)
    n, h, w, c = tensor.shape
    shape = (n, h + sum(ends[0]), w + sum(ends[1]), c)
    t = reading.graph.add_tensor(Tensor(f"{layer.name}/padded", shape, tensor.dtype))
    inputs = [x, reading.add_constant(f"{layer.name}/pads", amounts)]
    if fill:
        inputs.append(reading.add_constant(f"{layer.name}/fill", np.float32(fill).reshape(())))
    operator = "padv2" if fill else "pad"
    reading.graph.nodes.append(Node(operator, tuple(inputs), (t,), name=f"{layer.name}/pad"))
    return t
