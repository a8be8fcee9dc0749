"""EMBEDDING_LOOKUP_SPARSE: sums of weighted rows of a table, gathered by bucket.

Input 0 are the rows to add, input 1 the bucket of each (its last coordinate is not used), input 2 the shape of the
buckets, input 3 the weights, input 4 the table. Neighbours of one bucket form a group; with combiner "mean" the bucket
is divided by the sum of the group's weights, with "sqrtn" by the root of the sum of their squares. All in float32, in
the order of the rows.

Source: TFLite kernels/embedding_lookup_sparse.cc.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from tflq.errors import GraphError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.operands.checks import require_type
from tflq.interpreter.operands.indexing import checked_indices, equal_samples
from tflq.interpreter.operands.movable import constant_vector, shape_of
from tflq.interpreter.operands.result_size import require_result


@dataclass(frozen=True)
class EmbeddingLookupSparse:
    """How to gather.

    Attributes:
        buckets: the shape of the buckets.
        combiner: "sum", "mean" or "sqrtn".
    """

    buckets: tuple[int, ...]
    combiner: str


def lower(node: Node, operands: Operands) -> EmbeddingLookupSparse:
    """Decide the buckets.

    Raises:
        GraphError: shapes that do not fit each other, or a shape computed at run time.
        UnsupportedError: other types than int32 for indices and float32 for values.
    """
    rows, places, weights, table = (operands.input(i) for i in (0, 1, 3, 4))
    for tensor in (rows, places):
        require_type(tensor, (DType.INT32,))
    for tensor in (weights, table, operands.output()):
        require_type(tensor, (DType.FLOAT32,))
    shape = shape_of(constant_vector(operands, 2, (DType.INT32,)), "the shape")
    count = rows.size
    if rows.shape != (count,) or weights.shape != (count,) or places.shape != (count, len(shape)):
        raise GraphError(f"rows {rows.shape}, places {places.shape} and weights {weights.shape} do not fit {shape}")
    if len(table.shape) < 2 or not shape:
        raise GraphError(f"a table of shape {table.shape} has no rows to add into buckets of shape {shape}")
    require_result((*shape[:-1], *table.shape[1:]), table.dtype)
    return EmbeddingLookupSparse(shape[:-1], node.attributes.text("combiner", "sum"))


def run(
    params: EmbeddingLookupSparse, rows: Array, places: Array, _shape: Array | None, weights: Array, table: Array
) -> tuple[Array, ...]:
    """Run EMBEDDING_LOOKUP_SPARSE: -> float32[S, *buckets, *row].

    Raises:
        InputError: an index out of range.
    """
    checked = checked_indices(rows, table.shape[1], "the table")
    flat = np.zeros(places.shape[:2], np.int64)
    for i, size in enumerate(params.buckets):
        flat = flat * size + checked_indices(places[..., i], size, f"axis {i} of the buckets")
    given = equal_samples(checked, flat, weights, table.reshape(*table.shape[:2], -1))
    result = np.stack([_combined(params, *(x[s] for x in given)) for s in range(given[0].shape[0])])
    return (result.reshape(result.shape[0], *params.buckets, *table.shape[2:]),)


def _combined(
    params: EmbeddingLookupSparse, rows: Array, buckets: Array, weights: Array, table: Array
) -> NDArray[np.float32]:
    result = np.zeros((prod(params.buckets), table.shape[1]), np.float32)
    total, squares, count, current = np.float32(0), np.float32(0), 0, 0
    for row, bucket, weight in zip(rows, buckets, weights.astype(np.float32), strict=True):
        if bucket != current:
            _finish(params, result, current, count, total, squares)
            total, squares, count, current = np.float32(0), np.float32(0), 0, int(bucket)
        count += 1
        squares, total = squares + weight * weight, total + weight
        result[current] += table[row] * weight
    _finish(params, result, current, count, total, squares)
    return result


def _finish(
    params: EmbeddingLookupSparse,
    result: NDArray[np.float32],
    bucket: int,
    count: int,
    total: np.float32,
    squares: np.float32,
) -> None:
    if count and params.combiner != "sum":
        with np.errstate(all="ignore"):
            result[bucket] /= total if params.combiner == "mean" else np.sqrt(squares)
