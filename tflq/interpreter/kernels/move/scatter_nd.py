"""SCATTER_ND: zeros of the shape in input 2, plus each update at the coordinates in the last axis of input 0.

Sums of integers wrap; of bools they are true where one is.

Source: TFLite kernels/scatter_nd.cc and internal/reference/reference_ops.h (ScatterNd).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from tflq.errors import GraphError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.operands.checks import require_type
from tflq.interpreter.operands.indexing import checked_indices
from tflq.interpreter.operands.movable import constant_vector, require_movable, shape_of
from tflq.interpreter.operands.result_size import require_result

TYPES = (DType.FLOAT32, DType.UINT8, DType.BOOL, DType.INT8, DType.INT64, DType.INT32)


@dataclass(frozen=True)
class ScatterNd:
    """The shape of the result, of the model's own axes."""

    shape: tuple[int, ...]


def lower(node: Node, operands: Operands) -> ScatterNd:
    """Decide the shape.

    Raises:
        GraphError: shapes that do not fit each other, or a shape computed at run time.
        UnsupportedError: a type that TFLite does not scatter.
    """
    indices, updates = operands.input(0), operands.input(1)
    require_type(indices, (DType.INT32,))
    require_movable(node, updates, operands.output(), TYPES)
    shape = shape_of(constant_vector(operands, 2, (DType.INT32,)), "the shape")
    if not indices.shape or not updates.shape:
        raise GraphError(f"indices and updates have shapes {indices.shape} and {updates.shape}; no scalars are allowed")
    *outer, count = indices.shape
    if count > len(shape) or updates.shape != (*outer, *shape[count:]):
        raise GraphError(
            f"indices {indices.shape}, updates {updates.shape} and the shape {shape} do not fit each other"
        )
    require_result(shape, updates.dtype)
    return ScatterNd(shape)


def run(params: ScatterNd, indices: Array, updates: Array, *_shape: Array) -> tuple[Array, ...]:
    """Run SCATTER_ND: int32[S or 1, *outer, n], T[S or 1, *outer, *inner] -> T[S, *shape].

    Raises:
        InputError: an index out of range.
    """
    samples = max(indices.shape[0], updates.shape[0])
    axes = indices.shape[-1]
    flat = np.arange(samples).reshape(-1, *(1,) * (indices.ndim - 2))
    for i, size in enumerate(params.shape[:axes]):
        flat = flat * size + checked_indices(indices[..., i], size, f"axis {i} of the result")
    result = np.zeros((samples * prod(params.shape[:axes]), prod(params.shape[axes:])), updates.dtype)
    rows = np.broadcast_to(updates, (samples, *updates.shape[1:])).reshape(-1, result.shape[1])
    add: np.ufunc = np.logical_or if updates.dtype == np.bool_ else np.add
    add.at(result, np.broadcast_to(flat, (samples, *indices.shape[1:-1])).reshape(-1), rows)
    return (result.reshape(samples, *params.shape),)
