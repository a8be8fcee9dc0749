"""Operators without a window: two operands that broadcast, activations, and the activation that a layer ends in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tflq.converters.onnx.model import OnnxAttribute
from tflq.converters.onnx.writer import Writer
from tflq.converters.passes.layouts import TO_FIRST, axis_first
from tflq.converters.passes.patterns import fused_activation
from tflq.graph import Array, Node

Attributes = Mapping[str, OnnxAttribute]
BOUNDS: dict[str, tuple[float, float | None]] = {"relu": (0, None), "relu6": (0, 6), "relu_n1_to_1": (-1, 1)}
"""Activations that clamp: what they clamp to."""
FUSED = ("none", *BOUNDS)


def write_activated(
    writer: Writer,
    node: Node,
    op_type: str,
    inputs: Sequence[str],
    attributes: Attributes | None = None,
    shape: tuple[int, ...] | None = None,
) -> None:
    """Write a node's tensor: the operator, a Reshape to `shape` where it is given, its fused activation."""
    t, fused = node.outputs[0], fused_activation(node)
    steps: list[tuple[str, list[str], Attributes]] = [(op_type, list(inputs), attributes or {})]
    if shape is not None:
        target = writer.constant(f"{writer.name(t)}_shape", np.array(shape, np.int64))
        steps.append(("Reshape", ["", target], {}))
        if len(shape) == 4:
            steps.append(("Transpose", [""], {"perm": TO_FIRST}))
    if fused != "none":
        steps.append(clamp_of(writer, t, fused, ""))
    for number, (kind, operands, options) in enumerate(steps):
        if number == len(steps) - 1:
            writer.write(t, kind, operands, **options)
        else:
            value = writer.node(kind, operands, f"{writer.name(t)}_linear", **options)
            steps[number + 1][1][0] = value


def clamp_of(writer: Writer, t: int, kind: str, value: str) -> tuple[str, list[str], Attributes]:
    """Return operator, operands and attributes that clamp a value."""
    low, high = BOUNDS[kind]
    if high is None:
        return "Relu", [value], {}
    name = writer.name(t)
    bounds = (("minimum", low), ("maximum", high))
    return (
        "Clip",
        [value, *(writer.constant(f"{name}_{what}", np.array(bound, np.float32)) for what, bound in bounds)],
        {},
    )


def binary(op_type: str) -> Callable[[Writer, Node], None]:
    """Return the rule of an operator with two operands and perhaps a fused activation."""

    def rule(writer: Writer, node: Node) -> None:
        rank = max(len(writer.tensor(t).shape) for t in node.inputs)
        write_activated(writer, node, op_type, [read_beside(writer, t, rank) for t in node.inputs])

    return rule


def read_beside(writer: Writer, t: int, rank: int) -> str:
    """Return a tensor's real value so that it broadcasts against others of a higher rank in ONNX's layout.

    Beside images [N, H, W, C] a constant [C] becomes [C, 1, 1].
    """
    tensor = writer.tensor(t)
    if tensor.data is not None:
        return writer.read_constant(t, _beside(tensor.data, rank))
    if rank != 4 or len(tensor.shape) == 4:
        return writer.read(t)
    shape = (1,) * (4 - len(tensor.shape)) + tensor.shape
    name = writer.name(t)
    target = writer.constant(f"{name}_shape", np.array(shape, np.int64))
    image = writer.node("Reshape", [writer.read(t), target], f"{name}_image")
    return writer.node("Transpose", [image], f"{name}_nchw", perm=TO_FIRST)


def _beside(value: Array, rank: int) -> Array:
    if rank != 4 or value.size == 1:
        return value.reshape(()) if value.size == 1 else value
    image = value.reshape((1,) * (4 - value.ndim) + value.shape).transpose(TO_FIRST)
    return np.asarray(image.reshape(image.shape[1:]) if image.shape[0] == 1 else image)


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
    writer.write(node.outputs[0], "Softmax", [x], axis=axis_first(-1, rank))
