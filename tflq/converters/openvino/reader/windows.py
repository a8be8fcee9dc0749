"""Operators with a window: their attributes, pools and reductions."""

from __future__ import annotations

import numpy as np

from tflq.converters.openvino.ir import Layer, Source
from tflq.converters.openvino.reader.graph import Reading
from tflq.converters.passes.patterns import TO_LAST
from tflq.errors import UnsupportedError
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


def reduce_mean(reading: Reading, layer: Layer, source: Source) -> None:
    """ReduceMean; over height and width with channels last."""
    x, given = layer.sources
    rank = len(reading.shape(x))
    axes = sorted({int(a) % max(rank, 1) for a in reading.constant(given).reshape(-1)})
    keep = layer.data.get("keep_dims", "false") == "true"
    is_last = rank == 4 and reading.is_last(x) and (keep or axes == [2, 3])
    mapped = sorted(TO_LAST.index(a) for a in axes) if is_last else axes
    t = reading.in_last(x) if is_last else reading.in_plain(x)
    constant = reading.add_constant(f"{layer.name}/axes", np.array(mapped, np.int32))
    reading.add("mean", [t, constant], source, is_last, attributes={"keep_dims": keep})


def reshape(reading: Reading, layer: Layer, source: Source) -> None:
    """Reshape, in the file's order of elements."""
    shape = reading.shape(source)
    if int(np.prod(shape)) != int(np.prod(reading.shape(layer.sources[0]))):
        raise ValueError(f"{reading.shape(layer.sources[0])} has no shape {shape}")
    target = reading.add_constant(f"{layer.name}/shape", np.array(shape, np.int32))
    reading.add("reshape", [reading.in_plain(layer.sources[0]), target], source)


def transpose(reading: Reading, layer: Layer, source: Source) -> None:
    """Transpose; from N C H W to N H W C it is the change of layout that a value may have made already."""
    x, order = layer.sources
    axes = tuple(int(a) for a in reading.constant(order).reshape(-1))
    if sorted(axes) != list(range(len(reading.shape(x)))):
        raise ValueError(f"order {axes} for {len(reading.shape(x))} axes")
    if axes == TO_LAST:
        reading.plain[source] = reading.in_last(x)
        return
    if axes == (0, 3, 1, 2) and not reading.is_last(x):
        reading.last[source] = reading.in_plain(x)
        return
    constant = reading.add_constant(f"{layer.name}/axes", np.array(axes, np.int32))
    reading.add("transpose", [reading.in_plain(x), constant], source)


def concat(reading: Reading, layer: Layer, source: Source) -> None:
    """Concat."""
    rank = len(reading.shape(source))
    axis = int(layer.data["axis"]) % max(rank, 1)
    is_last = rank == 4 and any(reading.is_last(s) for s in layer.sources)
    operands = [reading.in_last(s) if is_last else reading.in_plain(s) for s in layer.sources]
    reading.add(
        "concatenation",
        operands,
        source,
        is_last,
        attributes={"axis": TO_LAST.index(axis) if is_last else axis, "fused_activation_function": "none"},
    )


def pad(reading: Reading, layer: Layer, source: Source) -> None:
    """Pad with a constant."""
    if layer.data.get("pad_mode") != "constant":
        raise UnsupportedError(f"pad_mode {layer.data.get('pad_mode', '')[:20]}; constant is read")
    x, begin, end, *fill = layer.sources
    is_last = reading.is_last(x)
    amounts = np.stack([reading.constant(begin).reshape(-1), reading.constant(end).reshape(-1)], axis=1)
    if is_last:
        amounts = amounts[list(TO_LAST)]
    t = reading.in_last(x) if is_last else reading.in_plain(x)
    inputs = [t, reading.add_constant(f"{layer.name}/pads", amounts.astype(np.int32))]
    value = float(reading.constant(fill[0]).reshape(-1)[0]) if fill else 0.0
    if value:
        inputs.append(reading.add_constant(f"{layer.name}/fill", np.float32(value).reshape(())))
    reading.add("padv2" if value else "pad", inputs, source, is_last)
