"""The last step of an operator: its fused activation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tflq.converters.onnx.values import OnnxAttribute
from tflq.converters.onnx.writer import TO_CHANNELS_FIRST, Writer
from tflq.converters.passes.patterns import fused_activation
from tflq.graph import Node

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
            steps.append(("Transpose", [""], {"perm": TO_CHANNELS_FIRST}))
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
