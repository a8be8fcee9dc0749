"""Convolutions, fully connected layers, pools, and the reshapes in front of them, in the forms that ONNX has."""

from __future__ import annotations

import numpy as np

from tflq.converters.exchange.emitter import ExchangeAttribute, Value, written_shape
from tflq.converters.onnx.writer import Writer, is_same_order
from tflq.converters.passes.patterns import TO_FIRST, shape_first
from tflq.errors import UnsupportedError
from tflq.graph import Array
from tflq.interpreter.operands.sliding_windows import Window, window_of


def conv_2d(writer: Writer) -> None:
    """Conv, weights [O, KH, KW, C/groups] -> [O, C/groups, KH, KW]."""
    weights = writer.constant_at(1)
    groups = writer.tensor(writer.node.inputs[0]).shape[3] // weights.shape[3]
    _convolution(writer, np.transpose(weights, (0, 3, 1, 2)), groups)


def depthwise_conv_2d(writer: Writer) -> None:
    """Conv with a group for each channel, weights [1, KH, KW, C*m] -> [C*m, 1, KH, KW]."""
    channels = writer.tensor(writer.node.inputs[0]).shape[3]
    _convolution(writer, np.transpose(writer.constant_at(1), (3, 0, 1, 2)), channels)


def fully_connected(writer: Writer) -> None:
    """Gemm with transB = 1; behind a flattened image the columns go from (h, w, c) to (c, h, w)."""
    source, wanted = writer.node.inputs[0], writer.output().shape
    image = writer.flattened.get(source)
    tensor = writer.tensor(writer.node.inputs[1])
    if tensor.data is None:
        weights = writer.plain(1)
    else:
        data = tensor.data
        if image is not None:
            data = data.reshape(-1, *image).transpose(0, 3, 1, 2).reshape(data.shape)
        weights = writer.weights(writer.node.inputs[1], data, 0)
    depth = tensor.shape[1]
    x = writer.held(source)
    rows = x if x.shape == (x.shape[0], depth) else _shaped(writer, source, (int(np.prod(x.shape)) // depth, depth))
    value = writer.add("Gemm", [rows, weights, *_bias(writer)], (rows.shape[0], tensor.shape[0]), transB=1)
    if len(wanted) != 2:
        value = writer.reshaped(value, wanted)
        if len(wanted) == 4:
            value = writer.transposed(value, TO_FIRST, True)
    writer.result(value)


def reshape(writer: Writer) -> None:
    """RESHAPE, SQUEEZE, EXPAND_DIMS: Reshape in the model's own order of elements.

    An image that is flattened for fully connected layers only stays in the order (c, h, w): they permute their weights.
    """
    source, t = writer.node.inputs[0], writer.node.outputs[0]
    old, new = writer.tensor(source).shape, writer.tensor(t).shape
    if _is_flattened_for_products(writer, source, t):
        writer.flattened[t] = (old[1], old[2], old[3])
        first = writer.laid(source, True)
        writer.result(writer.add("Reshape", [first, writer.whole("shape", new)], new, first=False))
        return
    if len(new) == 4 and is_same_order(shape_first(new)):
        value = writer.in_order(source)
        target = shape_first(new)
        writer.result(writer.add("Reshape", [value, writer.whole("shape", target)], target, first=True))
        return
    writer.result(_shaped(writer, source, new))


def _shaped(writer: Writer, t: int, shape: tuple[int, ...]) -> Value:
    value = writer.in_order(t)
    return writer.add("Reshape", [value, writer.whole("shape", shape)], shape, first=False)


def _is_flattened_for_products(writer: Writer, source: int, t: int) -> bool:
    graph = writer.graph
    old, new = writer.tensor(source).shape, writer.tensor(t).shape
    if len(old) != 4 or len(new) != 2 or new[0] != old[0] or t in graph.outputs:
        return False
    if not writer.held(source).is_first:
        return False
    readers = [graph.nodes[i] for i in graph.consumers().get(t, [])]
    if any(n.operator != "fully_connected" or n.inputs[0] != t for n in readers):
        return False
    weights = [writer.tensor(n.inputs[1]) for n in readers]
    return all(w.is_constant and w.shape[1] == new[1] for w in weights)


def _convolution(writer: Writer, weights: Array, groups: int) -> None:
    shape = writer.tensor(writer.node.inputs[0]).shape
    kernel = (weights.shape[2], weights.shape[3])
    window = window_of(writer.node.attributes, (shape[1], shape[2]), kernel)
    operands = [writer.first(0), writer.weights(writer.node.inputs[1], weights, 0), *_bias(writer)]
    attributes: dict[str, ExchangeAttribute] = {
        "kernel_shape": kernel,
        "strides": window.stride,
        "dilations": window.dilation,
        "pads": (window.top, window.left, window.bottom, window.right),
        "group": groups,
    }
    writer.result(
        writer.add("Conv", operands, written_shape(writer.output().shape, True), first=True, options=attributes)
    )


def _bias(writer: Writer) -> list[Value]:
    """Return the node's bias, input 2, if it has one."""
    t = writer.given(2)
    if t is None:
        return []
    tensor = writer.tensor(t)
    if tensor.dtype.is_integer and tensor.quantisation is None:
        raise UnsupportedError(f"bias '{tensor.name}' has no scale; use form=float")
    return [writer.laid(t, False) if tensor.data is None else writer.weights(t, tensor.data, 0)]


def average_pool_2d(writer: Writer) -> None:
    """AveragePool that does not count padding; over the whole image it is GlobalAveragePool."""
    window, size = _window(writer)
    x, shape = writer.first(0), written_shape(writer.output().shape, True)
    if window.kernel == size and window.output_size(size) == (1, 1) and not any(window.padding):
        writer.result(writer.add("GlobalAveragePool", [x], shape))
    else:
        attributes = {**_attributes(window, size), "count_include_pad": 0}
        writer.result(writer.add("AveragePool", [x], shape, options=attributes))


def layer_normalization(writer: Writer) -> None:
    """LayerNormalization over the last axis; no operator of TFLite, but targets recognise its parts."""
    x, epsilon = writer.plain(0), writer.node.attributes.real("epsilon")
    constants = [writer.laid(t, False) for t in writer.node.inputs[1:]]
    writer.result(writer.add("LayerNormalization", [x, *constants], axis=x.rank - 1, epsilon=epsilon))


def max_pool_2d(writer: Writer) -> None:
    """MaxPool."""
    window, size = _window(writer)
    shape = written_shape(writer.output().shape, True)
    writer.result(writer.add("MaxPool", [writer.first(0)], shape, options=_attributes(window, size)))


def _window(writer: Writer) -> tuple[Window, tuple[int, int]]:
    shape, options = writer.tensor(writer.node.inputs[0]).shape, writer.node.attributes
    kernel = (options.integer("filter_height"), options.integer("filter_width"))
    return window_of(options, (shape[1], shape[2]), kernel), (shape[1], shape[2])


def _attributes(window: Window, size: tuple[int, int]) -> dict[str, ExchangeAttribute]:
    """A stride along an axis that the window fills does nothing: it is written as 1, since some tools have limits."""
    bottom, right = _needed_padding(window, size)
    spare = (size[0] + window.top + bottom - window.kernel[0], size[1] + window.left + right - window.kernel[1])
    strides = tuple(s if rest else 1 for s, rest in zip(window.stride, spare, strict=True))
    return {"kernel_shape": window.kernel, "strides": strides, "pads": (window.top, window.left, bottom, right)}


def _needed_padding(window: Window, size: tuple[int, int]) -> tuple[int, int]:
    """Return bottom and right with just what the outputs read: then any stride gives the same outputs."""
    output = window.output_size(size)
    ends = []
    for axis, (before, after) in enumerate(((window.top, window.bottom), (window.left, window.right))):
        last = (output[axis] - 1) * window.stride[axis] + window.kernel[axis]
        ends.append(min(after, max(0, last - before - size[axis])))
    return ends[0], ends[1]
