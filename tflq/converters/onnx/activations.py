"""Activations that stand alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tflq.converters.onnx.activated import clamp_of
from tflq.converters.onnx.elementwise import read_beside
from tflq.converters.onnx.writer import Writer, onnx_axis
from tflq.graph import Node

Rule = Callable[[Writer, Node], None]


def clamp(writer: Writer, node: Node) -> None:
    """RELU, RELU6, RELU_N1_TO_1: Relu or Clip."""
    kind, inputs, attributes = clamp_of(writer, node.outputs[0], node.operator, writer.read(node.inputs[0]))
    writer.write(node.outputs[0], kind, inputs, **attributes)


def unary(op_type: str) -> Rule:
    """Return the rule of an operator with one input and no attributes."""

    def rule(writer: Writer, node: Node) -> None:
        writer.write(node.outputs[0], op_type, [writer.read(node.inputs[0])])

    return rule


def leaky_relu(writer: Writer, node: Node) -> None:
    """LeakyRelu."""
    writer.write(node.outputs[0], "LeakyRelu", [writer.read(node.inputs[0])], alpha=node.attributes.real("alpha"))


def prelu(writer: Writer, node: Node) -> None:
    """PRelu, slopes shaped [C, 1, 1] beside an image."""
    rank = len(writer.tensor(node.inputs[0]).shape)
    writer.write(node.outputs[0], "PRelu", [writer.read(node.inputs[0]), read_beside(writer, node.inputs[1], rank)])


def hard_swish(writer: Writer, node: Node) -> None:
    """Write x * HardSigmoid(x): the operator HardSwish is younger than the opset."""
    x, name = writer.read(node.inputs[0]), writer.name(node.outputs[0])
    gate = writer.node("HardSigmoid", [x], f"{name}_gate", alpha=1.0 / 6.0, beta=0.5)
    writer.write(node.outputs[0], "Mul", [x, gate])


def softmax(writer: Writer, node: Node) -> None:
    """Softmax along the channels; a beta other than 1 is multiplied in front of it."""
    x, rank = writer.read(node.inputs[0]), len(writer.tensor(node.inputs[0]).shape)
    beta = node.attributes.real("beta", 1.0)
    if beta != 1.0:
        name = writer.name(node.outputs[0])
        x = writer.node("Mul", [x, writer.constant(f"{name}_beta", np.array(beta, np.float32))], f"{name}_scaled")
    writer.write(node.outputs[0], "Softmax", [x], axis=onnx_axis(-1, rank))
