"""Convolutions and fully connected layers."""

from __future__ import annotations

import numpy as np

from tflq.converters.onnx.activated import write_activated
from tflq.converters.onnx.shapes import flat_rows
from tflq.converters.onnx.values import OnnxAttribute
from tflq.converters.onnx.writer import Writer
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
