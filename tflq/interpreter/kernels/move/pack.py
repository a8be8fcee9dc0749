"""PACK: tensors of one shape become one, side by side along a new axis.

Source: TFLite kernels/pack.cc.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import GraphError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.operands.checks import require_same_type, resolve_axis
from tflq.interpreter.operands.indexing import equal_samples
from tflq.interpreter.operands.movable import require_movable, require_same_quantisation
from tflq.interpreter.operands.result_size import require_result

TYPES = (
    DType.FLOAT32, DType.UINT8, DType.UINT32, DType.INT8, DType.INT16, DType.INT32, DType.INT64,
    DType.FLOAT8_E4M3FN, DType.FLOAT8_E5M2,
)  # fmt: skip


@dataclass(frozen=True)
class Pack:
    """The new axis, counted from 0 in the model's own shape."""

    axis: int


def lower(node: Node, operands: Operands) -> Pack:
    """Decide the axis.

    Raises:
        GraphError: shapes that differ, values_count that is not the number of inputs, an axis out of range.
        UnsupportedError: types or quantisations that differ, or that TFLite does not pack.
    """
    inputs = [operands.input(i) for i in range(len(operands.inputs))]
    count = node.attributes.integer("values_count", len(inputs))
    if count != len(inputs) or not inputs:
        raise GraphError(f"values_count is {count} and there are {len(inputs)} inputs; they are equal, 1 or more")
    require_movable(node, inputs[0], operands.output(), TYPES)
    require_same_type(*inputs)
    for tensor in inputs:
        if tensor.shape != inputs[0].shape:
            raise GraphError(f"inputs have shapes {inputs[0].shape} and {tensor.shape}; they must be equal")
        require_same_quantisation(node, operands.output(), tensor)
    require_result((count, *inputs[0].shape), inputs[0].dtype)
    return Pack(resolve_axis(node.attributes.integer("axis", 0), len(inputs[0].shape) + 1))


def run(params: Pack, *arrays: Array) -> tuple[Array, ...]:
    """Run PACK: n of T[S or 1, *shape] -> T[S, *shape with an axis of n]."""
    return (np.stack(equal_samples(*arrays), params.axis + 1),)
