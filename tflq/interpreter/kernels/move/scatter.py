"""SCATTER_ND and SPARSE_TO_DENSE: elements at places that indices name.

Coordinates stand in the last axis of the indices. Sums of integers wrap; of bools they are true where one is. Of equal
indices of SPARSE_TO_DENSE the last wins.

SCATTER_ND: zeros of the shape in input 2, plus each update at the coordinates in input 0. Source: TFLite
kernels/scatter_nd.cc, internal/reference/reference_ops.h (ScatterNd).
SPARSE_TO_DENSE: default_value everywhere but at the places that the indices name. Source: TFLite
kernels/sparse_to_dense.cc, internal/reference/reference_ops.h (SparseToDense).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.operands.checks import require_same_type, require_type
from tflq.interpreter.operands.indexing import checked_indices
from tflq.interpreter.operands.movable import INDEX_TYPES, constant_vector, require_movable, shape_of
from tflq.interpreter.operands.result_size import require_result
from tflq.interpreter.registry import Kernel

_SCATTERED = (DType.FLOAT32, DType.UINT8, DType.BOOL, DType.INT8, DType.INT64, DType.INT32)


@dataclass(frozen=True)
class Scattered:
    """The shape of the result, of the model's own axes."""

    shape: tuple[int, ...]


def _lower_scatter(node: Node, operands: Operands) -> Scattered:
    """Decide the shape.

    Raises:
        GraphError: shapes that do not fit each other, or a shape computed at run time.
        UnsupportedError: a type that TFLite does not scatter.
    """
    indices, updates = operands.input(0), operands.input(1)
    require_type(indices, (DType.INT32,))
    require_movable(node, updates, operands.output(), _SCATTERED)
    shape = shape_of(constant_vector(operands, 2, (DType.INT32,)), "the shape")
    if not indices.shape or not updates.shape:
        raise GraphError(f"indices and updates have shapes {indices.shape} and {updates.shape}; no scalars are allowed")
    *outer, count = indices.shape
    if count > len(shape) or updates.shape != (*outer, *shape[count:]):
        raise GraphError(
            f"indices {indices.shape}, updates {updates.shape} and the shape {shape} do not fit each other"
        )
    require_result(shape, updates.dtype)
    return Scattered(shape)


def _run_scatter(params: Scattered, indices: Array, updates: Array, *_shape: Array) -> tuple[Array, ...]:
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


_DENSE = (DType.FLOAT32, DType.INT32, DType.INT64, DType.INT8, DType.UINT8)
MAXIMUM_AXES = 4
"""TFLite's kernel stops there."""


def _lower_dense(node: Node, operands: Operands) -> Scattered:
    """Decide the shape.

    Raises:
        GraphError: shapes that do not fit each other, or a shape computed at run time.
        UnsupportedError: a type that TFLite does not take, or more than 4 axes.
    """
    indices, values, default = operands.input(0), operands.input(2), operands.input(3)
    require_type(indices, INDEX_TYPES)
    require_movable(node, values, operands.output(), _DENSE)
    require_same_type(values, default)
    shape = shape_of(constant_vector(operands, 1), "the shape")
    if len(shape) > MAXIMUM_AXES:
        raise UnsupportedError(f"the shape {shape} has {len(shape)} axes; TFLite takes up to {MAXIMUM_AXES}")
    rows, axes = indices.shape if len(indices.shape) == 2 else (indices.size, 1)
    if len(indices.shape) > 2 or axes != len(shape) or default.size != 1:
        raise GraphError(
            f"indices {indices.shape}, default {default.shape} and the shape {shape} do not fit each other"
        )
    if values.shape not in ((), (rows,)):
        raise GraphError(f"values have shape {values.shape}; a scalar or ({rows},) is needed")
    require_result(shape, values.dtype)
    return Scattered(shape)


def _run_dense(
    params: Scattered, indices: Array, _shape: Array | None, values: Array, default: Array
) -> tuple[Array, ...]:
    """Run SPARSE_TO_DENSE: int[S or 1, n, axes], T[S or 1, n or nothing], T[S or 1] -> T[S, *shape].

    Raises:
        InputError: an index out of range.
    """
    samples = max(x.shape[0] for x in (indices, values, default))
    result = np.empty((samples, *params.shape), values.dtype)
    result[...] = default.reshape(-1, *(1,) * len(params.shape))
    rows = indices.reshape(indices.shape[0], -1, len(params.shape))
    places = [checked_indices(rows[..., i], size, f"axis {i} of the result") for i, size in enumerate(params.shape)]
    flat = np.ravel_multi_index(places, params.shape) if rows.size else np.zeros((rows.shape[0], 0), np.int64)
    given = values.reshape(values.shape[0], -1)
    result.reshape(samples, -1)[np.arange(samples)[:, None], flat] = given
    return (result,)


KERNELS = {
    "scatter_nd": Kernel(_lower_scatter, _run_scatter),
    "sparse_to_dense": Kernel(_lower_dense, _run_dense),
}
