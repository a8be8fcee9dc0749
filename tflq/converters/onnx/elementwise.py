"""Operators of two operands that broadcast."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tflq.converters.onnx.activated import write_activated
from tflq.converters.onnx.writer import TO_CHANNELS_FIRST, Writer
from tflq.graph import Array, Node


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
    return writer.node("Transpose", [image], f"{name}_nchw", perm=TO_CHANNELS_FIRST)


def _beside(value: Array, rank: int) -> Array:
    if rank != 4 or value.size == 1:
        return value.reshape(()) if value.size == 1 else value
    image = value.reshape((1,) * (4 - value.ndim) + value.shape).transpose(TO_CHANNELS_FIRST)
    return np.asarray(image.reshape(image.shape[1:]) if image.shape[0] == 1 else image)
