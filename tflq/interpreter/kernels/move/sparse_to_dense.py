"""SPARSE_TO_DENSE: default_value everywhere but at the places that the indices name; the last of equal indices wins.

Source: TFLite kernels/sparse_to_dense.cc and internal/reference/reference_ops.h (SparseToDense).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.operands.checks import require_same_type, require_type
from tflq.interpreter.operands.indexing import checked_indices
from tflq.interpreter.operands.movable import INDEX_TYPES, constant_vector, require_movable, shape_of
from tflq.interpreter.operands.result_size import require_result

TYPES = (DType.FLOAT32, DType.INT32, DType.INT64, DType.INT8, DType.UINT8)
MAXIMUM_AXES = 4
"""TFLite's kernel stops there."""


@dataclass(frozen=True)
class SparseToDense:
    """The shape of the result, of the model's own axes."""

    shape: tuple[int, ...]


def lower(node: Node, operands: Operands) -> SparseToDense:
    """Decide the shape.

    Raises:
        GraphError: shapes that do not fit each other, or a shape computed at run time.
        UnsupportedError: a type that TFLite does not take, or more than 4 axes.
    """
    indices, values, default = operands.input(0), operands.input(2), operands.input(3)
    require_type(indices, INDEX_TYPES)
    require_movable(node, values, operands.output(), TYPES)
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
    return SparseToDense(shape)


def run(
    params: SparseToDense, indices: Array, _shape: Array | None, values: Array, default: Array
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
