"""Sums, products and activations."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tflq.converters.openvino.emit.writer import NUMPY, Writer
from tflq.converters.openvino.ir import Value
from tflq.converters.passes.patterns import axis_first, shape_first
from tflq.errors import UnsupportedError
from tflq.graph import Node

Rule = Callable[[Writer, Node], None]


def pair(kind: str) -> Rule:
    """Return the rule of an operator with two operands that broadcast."""

    def rule(writer: Writer, node: Node) -> None:
        shape = writer.tensor(node.outputs[0]).shape
        operands = [writer.read_beside(t, len(shape)) for t in node.inputs]
        writer.write(node, writer.builder.add(kind, node.name, operands, shape_first(shape), auto_broadcast=NUMPY))

    return rule


def unary(kind: str, **data: str) -> Rule:
    """Return the rule of an operator with one operand."""

    def rule(writer: Writer, node: Node) -> None:
        value = writer.read(node.inputs[0])
        writer.write(node, writer.builder.add(kind, node.name, [value], value.shape, "f32", **data))

    return rule


def rectifier(writer: Writer, node: Node) -> None:
    """RELU, RELU6, RELU_N1_TO_1, RELU_0_TO_1: ReLU or Clamp."""
    writer.write(node, writer.activated(writer.read(node.inputs[0]), node.operator, node.name))


def leaky_relu(writer: Writer, node: Node) -> None:
    """PRelu with one slope."""
    slope = writer.reals(f"{node.name}/slope", np.array([node.attributes.real("alpha")]))
    _sloped(writer, node, slope)


def prelu(writer: Writer, node: Node) -> None:
    """PRelu with a slope for each channel.

    Raises:
        UnsupportedError: slopes that differ along other axes.
    """
    data, channels = writer.constant_of(node.inputs[1]), writer.tensor(node.inputs[0]).shape[-1]
    if data.size != 1 and (data.size != channels or data.shape[-1] != channels):
        raise UnsupportedError(f"slopes of shape {data.shape}; PRelu takes one for each of {channels} channels")
    _sloped(writer, node, writer.reals(f"{node.name}/slope", data.reshape(-1)))


def softmax(writer: Writer, node: Node) -> None:
    """SoftMax along the channels; a beta other than 1 is multiplied in front of it."""
    value = writer.read(node.inputs[0])
    beta = node.attributes.real("beta", 0.0)
    if beta != 1.0:
        factor = writer.reals(f"{node.name}/beta", np.full((1,) * len(value.shape), beta))
        name = f"{node.name}/scaled"
        value = writer.builder.add("Multiply", name, [value, factor], value.shape, auto_broadcast=NUMPY)
    axis = str(axis_first(-1, len(value.shape)))
    writer.write(node, writer.builder.add("SoftMax", node.name, [value], value.shape, axis=axis))


def _sloped(writer: Writer, node: Node, slope: Value) -> None:
    value = writer.read(node.inputs[0])
    writer.write(node, writer.builder.add("PRelu", node.name, [value, slope], value.shape))
