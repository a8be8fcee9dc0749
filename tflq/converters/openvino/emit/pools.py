"""Pools and means."""

from __future__ import annotations

from tflq.converters.openvino.emit.filters import pads_of
from tflq.converters.openvino.emit.writer import CHANNELS_FIRST, Writer, ir_axis, ir_shape
from tflq.graph import Node
from tflq.interpreter.accumulate import window_of


def average_pool_2d(writer: Writer, node: Node) -> None:
    """AvgPool that does not count padding."""
    _pool(writer, node, "AvgPool", {"exclude-pad": "true"})


def max_pool_2d(writer: Writer, node: Node) -> None:
    """MaxPool; on levels its input's levels stay."""
    _pool(writer, node, "MaxPool", {})


def mean(writer: Writer, node: Node) -> None:
    """ReduceMean; where other axes than height and width go, in the graph's own layout."""
    tensor, output = writer.tensor(node.inputs[0]), writer.tensor(node.outputs[0])
    rank, keep = len(tensor.shape), node.attributes.boolean("keep_dims", False)
    axes = sorted({int(a) % rank for a in writer.constant_of(node.inputs[1]).reshape(-1)})
    in_layout = rank != 4 or keep or axes == [1, 2]
    value = writer.read(node.inputs[0]) if in_layout else writer.read_plain(node.inputs[0])
    mapped = sorted(ir_axis(a, rank) for a in axes) if in_layout else axes
    shape = ir_shape(output.shape) if in_layout else output.shape
    inputs = [value, writer.whole(f"{node.name}/axes", mapped)]
    value = writer.builder.add("ReduceMean", node.name, inputs, shape, keep_dims="true" if keep else "false")
    if not in_layout and len(shape) == 4:
        value = writer.transposed(value, CHANNELS_FIRST, f"{node.name}/nchw")
    writer.write(node, value)


def _pool(writer: Writer, node: Node, kind: str, more: dict[str, str]) -> None:
    shape = writer.tensor(node.inputs[0]).shape
    kernel = (node.attributes.integer("filter_height"), node.attributes.integer("filter_width"))
    window = window_of(node.attributes, (shape[1], shape[2]), kernel)
    data = {
        "kernel": ", ".join(map(str, window.kernel)),
        "strides": ", ".join(map(str, window.stride)),
        "rounding_type": "floor",
        **pads_of(window),
        **more,
    }
    output = ir_shape(writer.tensor(node.outputs[0]).shape)
    value = writer.builder.add(kind, node.name, [writer.read(node.inputs[0])], output, "f32", **data)
    if kind == "MaxPool" and writer.tensor(node.inputs[0]).dtype.is_integer:
        writer.values[node.outputs[0]] = value
    else:
        writer.write(node, value)
