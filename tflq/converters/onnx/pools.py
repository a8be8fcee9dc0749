"""Pools and means."""

from __future__ import annotations

from tflq.converters.onnx.activated import write_activated
from tflq.converters.onnx.filters import pads_of
from tflq.converters.onnx.values import OnnxAttribute
from tflq.converters.onnx.writer import Writer, onnx_axis
from tflq.errors import UnsupportedError
from tflq.graph import Node
from tflq.interpreter.accumulate import Window, window_of


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
    mapped = tuple(sorted(onnx_axis(a, rank) if keeps_layout else a for a in axes))
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
