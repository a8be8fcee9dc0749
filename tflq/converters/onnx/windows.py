"""Convolutions, fully connected layers, pools and means."""

from __future__ import annotations

import numpy as np

from tflq.converters.onnx.elementwise import write_activated
from tflq.converters.onnx.model import OnnxAttribute
from tflq.converters.onnx.shapes import flat_rows
from tflq.converters.onnx.writer import Writer
from tflq.converters.passes.layouts import axis_first
from tflq.errors import UnsupportedError
from tflq.graph import ABSENT, Array, Node
from tflq.interpreter.accumulate import Window, window_of


def conv_2d(writer: Writer, node: Node) -> None:
    """Conv, weights [O, KH, KW, C/groups] -> [O, C/groups, KH, KW]."""
    x, weights = (writer.tensor(t) for t in node.inputs[:2])
    groups = x.shape[3] // weights.shape[3]
    _convolution(writer, node, np.transpose(_value(writer, node, 1), (0, 3, 1, 2)), groups)


def depthwise_conv_2d(writer: Writer, node: Node) -> None:
    """Conv with a group for each channel, weights [1, KH, KW, C*m] -> [C*m, 1, KH, KW]."""
    channels = writer.tensor(node.inputs[0]).shape[3]
    _convolution(writer, node, np.transpose(_value(writer, node, 1), (3, 0, 1, 2)), channels)


def fully_connected(writer: Writer, node: Node) -> None:
    """Gemm with transB = 1; behind a flattened image the columns go from (h, w, c) to (c, h, w)."""
    weights = _value(writer, node, 1)
    image = writer.flattened.get(node.inputs[0])
    if image is not None:
        weights = weights.reshape(-1, *image).transpose(0, 3, 1, 2).reshape(weights.shape)
    rows = flat_rows(writer, node.inputs[0], weights.shape[1])
    inputs = [rows, writer.read_constant(node.inputs[1], weights), *_bias(writer, node)]
    shape = writer.tensor(node.outputs[0]).shape
    write_activated(writer, node, "Gemm", inputs, {"transB": 1}, shape if len(shape) != 2 else None)


def pads_of(window: Window) -> tuple[int, int, int, int]:
    """Return ONNX's order of padding: top, left, bottom, right."""
    return (window.top, window.left, window.bottom, window.right)


def _convolution(writer: Writer, node: Node, weights: Array, groups: int) -> None:
    shape = writer.tensor(node.inputs[0]).shape
    kernel = (weights.shape[2], weights.shape[3])
    window = window_of(node.attributes, (shape[1], shape[2]), kernel)
    inputs = [writer.read(node.inputs[0]), writer.read_constant(node.inputs[1], weights), *_bias(writer, node)]
    attributes: dict[str, OnnxAttribute] = {
        "kernel_shape": kernel,
        "strides": window.stride,
        "dilations": window.dilation,
        "pads": pads_of(window),
        "group": groups,
    }
    write_activated(writer, node, "Conv", inputs, attributes)


def _bias(writer: Writer, node: Node) -> list[str]:
    if len(node.inputs) < 3 or node.inputs[2] == ABSENT:
        return []
    return [writer.read_constant(node.inputs[2], _value(writer, node, 2))]


def _value(writer: Writer, node: Node, position: int) -> Array:
    tensor = writer.tensor(node.inputs[position])
    if tensor.data is None:
        raise UnsupportedError(f"{node.name}: '{tensor.name}' is computed at run time; a constant is needed")
    return tensor.data


def average_pool_2d(writer: Writer, node: Node) -> None:
    """AveragePool that does not count padding; over the whole image it is GlobalAveragePool."""
    window, size = _window(writer, node)
    x = writer.read(node.inputs[0])
    if window.kernel == size and window.output_size(size) == (1, 1) and not any(window.padding):
        write_activated(writer, node, "GlobalAveragePool", [x])
    else:
        attributes = {**_attributes(window, size), "count_include_pad": 0}
        write_activated(writer, node, "AveragePool", [x], attributes)


def max_pool_2d(writer: Writer, node: Node) -> None:
    """MaxPool."""
    window, size = _window(writer, node)
    write_activated(writer, node, "MaxPool", [writer.read(node.inputs[0])], _attributes(window, size))


def mean(writer: Writer, node: Node) -> None:
    """ReduceMean; where axes go and others than N, C stay, in the model's own layout."""
    tensor, data = writer.tensor(node.inputs[0]), writer.tensor(node.inputs[1]).data
    if data is None:
        raise UnsupportedError(f"{node.name}: the axes are computed at run time; a constant is needed")
    rank, keep = len(tensor.shape), node.attributes.boolean("keep_dims", False)
    axes = sorted({int(a) % rank for a in data.reshape(-1)})
    keeps_layout = rank != 4 or keep or axes == [1, 2]
    x = writer.read(node.inputs[0]) if keeps_layout else writer.read_plain(node.inputs[0])
    mapped = tuple(sorted(axis_first(a, rank) if keeps_layout else a for a in axes))
    writer.write(node.outputs[0], "ReduceMean", [x], axes=mapped, keepdims=int(keep))


def _window(writer: Writer, node: Node) -> tuple[Window, tuple[int, int]]:
    shape = writer.tensor(node.inputs[0]).shape
    kernel = (node.attributes.integer("filter_height"), node.attributes.integer("filter_width"))
    return window_of(node.attributes, (shape[1], shape[2]), kernel), (shape[1], shape[2])


def _attributes(window: Window, size: tuple[int, int]) -> dict[str, OnnxAttribute]:
    """A stride along an axis with one output does nothing: it is written as 1, since some tools have limits on it."""
    output = window.output_size(size)
    stride = tuple(s if o > 1 else 1 for s, o in zip(window.stride, output, strict=True))
    found = Window(window.kernel, (stride[0], stride[1]), (1, 1), *_needed_padding(window, size))
    return {"kernel_shape": found.kernel, "strides": found.stride, "pads": pads_of(found)}


def _needed_padding(window: Window, size: tuple[int, int]) -> tuple[int, int, int, int]:
    """Return top, bottom, left, right with just what the outputs read: then any stride gives the same outputs."""
    output = window.output_size(size)
    ends = []
    for axis, (before, after) in enumerate(((window.top, window.bottom), (window.left, window.right))):
        last = (output[axis] - 1) * window.stride[axis] + window.kernel[axis]
        ends.append((before, min(after, max(0, last - before - size[axis]))))
    return (*ends[0], *ends[1])
