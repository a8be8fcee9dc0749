"""CONCATENATION of tensors that share type and quantisation: data is moved, no value changes.

Source: TFLite kernels/concatenation.cc and internal/reference/concatenation.h (Concatenation).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.operands.checks import require_result, require_same_type, resolve_axis
from tflq.interpreter.operands.movable import require_tflite_type

TYPES = (
    DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16, DType.FLOAT8_E4M3FN, DType.FLOAT8_E5M2,
    DType.INT4, DType.UINT8, DType.INT8, DType.INT16, DType.INT32, DType.UINT32, DType.INT64, DType.BOOL,
)  # fmt: skip


@dataclass(frozen=True)
class Concatenation:
    """Where to join.

    Attributes:
        axis: counted from 0 in the model's own shape.
    """

    axis: int


def lower(node: Node, operands: Operands) -> Concatenation:
    """Decide the axis.

    Raises:
        UnsupportedError: a fused activation, other types, or inputs quantised otherwise than the output.
        GraphError: shapes that do not fit.
    """
    inputs = [operands.input(i) for i in range(len(operands.inputs))]
    output = operands.output()
    params = check_shapes(node, operands)
    require_same_type(*inputs, output)
    for tensor in inputs:
        if tensor.quantisation != output.quantisation:
            raise UnsupportedError(f"input '{tensor.name}' is quantised otherwise than the output '{output.name}'")
    return params


def run(params: Concatenation, *arrays: Array) -> tuple[Array, ...]:
    """Run CONCATENATION: T[S or 1, *shape_i] -> T[S, *shape]."""
    return (concatenate(params, arrays),)


def check_shapes(node: Node, operands: Operands) -> Concatenation:
    """Check that all inputs agree but along the axis.

    Raises:
        UnsupportedError: a fused activation, or a type that TFLite does not concatenate.
        GraphError: no inputs, scalars, other ranks or sizes, or an axis out of range.
    """
    activation = node.attributes.text("fused_activation_function", "none")
    if activation != "none":
        raise UnsupportedError(f"fused activation '{activation}'; concatenation takes none")
    require_tflite_type(node, operands.output(), TYPES)
    shapes = [operands.input(i).shape for i in range(len(operands.inputs))]
    if not shapes or not shapes[0]:
        raise GraphError("concatenation needs one input or more, with one axis or more")
    rank = len(shapes[0])
    axis = resolve_axis(node.attributes.integer("axis", 0), rank)
    rest = [(*shape[:axis], *shape[axis + 1 :]) for shape in shapes]
    for shape, others in zip(shapes, rest, strict=True):
        if len(shape) != rank or others != rest[0]:
            raise GraphError(f"shapes {shapes[0]} and {shape} differ elsewhere than along axis {axis}")
    require_result((sum(shape[axis] for shape in shapes), *rest[0]), operands.output().dtype)
    return Concatenation(axis)


def concatenate(params: Concatenation, arrays: Sequence[Array]) -> Array:
    """Join along the axis; a shared array is repeated for each sample if another one is sampled."""
    samples = max(x.shape[0] for x in arrays)
    full = [x if x.shape[0] == samples else np.broadcast_to(x, (samples, *x.shape[1:])) for x in arrays]
    return np.concatenate(full, params.axis + 1)
