"""EMBEDDING_LOOKUP, EMBEDDING_LOOKUP_SPARSE and HASHTABLE_LOOKUP: rows of a table, by their index or their key.

EMBEDDING_LOOKUP: If the table contains integers and the output is float, value = scale * q in float32 (zero points are
not looked at), then rounded to float16 if that is the output's type. The scale is that of the table, the row, or the
block of a row. TFLite's kernel has its quirks, which are kept: uint8 tables are read as int8; rows of int4 and int2
begin at whole bytes, so rows that do not fill them are read shifted.

EMBEDDING_LOOKUP_SPARSE: Input 0 are the rows to add, input 1 the bucket of each (its last coordinate is not used),
input 2 the shape of the buckets, input 3 the weights, input 4 the table. Neighbors of one bucket form a group; with
combiner "mean" the bucket is divided by the sum of the group's weights, with "sqrtn" by the root of the sum of their
squares. All in float32, in the order of the rows.

HASHTABLE_LOOKUP: The second output flags the keys that exist. The search halves the interval as C's bsearch does, so
that equal or unsorted keys return the same places.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Affine, Array, Blockwise, DType, Node, Operands, Tensor
from tflq.interpreter.operands.checks import (
    block_scales,
    require_result,
    require_same_type,
    require_sound_tensor,
    require_type,
)
from tflq.interpreter.operands.movable import checked_indices, constant_vector, equal_samples, sample_index, shape_of
from tflq.interpreter.registry import Kernel

HYBRID = (DType.UINT8, DType.INT8, DType.INT4, DType.INT2)


@dataclass(frozen=True, eq=False)
class EmbeddingLookup:
    """How values become the output's.

    Attributes:
        scale: float32[rows, blocks] of a table that is dequantized, None if its values are moved.
        dtype: numpy's name of the output's type.
        per_byte: elements in one byte of the table.
    """

    scale: NDArray[np.float32] | None
    dtype: str
    per_byte: int


def _lower_embedding_lookup(node: Node, operands: Operands) -> EmbeddingLookup:  # noqa: ARG001
    """Decide the scales.

    Raises:
        GraphError: indices that are no vector, a table of less than two axes, scales or blocks that do not fit it,
            scales that are no positive finite numbers.
        UnsupportedError: types that TFLite does not look up, or a zero point.
    """
    indices, table, output = operands.input(0), operands.input(1), operands.output()
    require_type(indices, (DType.INT32,))
    if len(indices.shape) != 1 or len(table.shape) < 2:
        raise GraphError(f"indices {indices.shape} and table {table.shape}: one axis, and two or more, are needed")
    require_type(table, tuple(dtype for dtype in DType if dtype.bits))
    require_result((*indices.shape, *table.shape[1:]), output.dtype)
    per_byte = max(1, 8 // table.dtype.bits)
    if output.dtype is table.dtype:
        if prod(table.shape[1:]) % per_byte:
            raise UnsupportedError(f"rows of shape {table.shape[1:]} of {table.dtype.value} do not fill whole bytes")
        return EmbeddingLookup(None, table.dtype.storage.name, per_byte)
    require_type(table, HYBRID)
    require_type(output, (DType.FLOAT32, DType.FLOAT16))
    scale = (
        block_scales(operands, 1, (DType.INT4, DType.INT2))
        if isinstance(table.quantization, Blockwise)
        else _scales(table, output)
    )
    return EmbeddingLookup(scale, output.dtype.storage.name, per_byte)


def _run_embedding_lookup(params: EmbeddingLookup, indices: Array, table: Array) -> tuple[Array, ...]:
    """Run EMBEDDING_LOOKUP: int32[S or 1, n], T[S or 1, rows, *row] -> U[S, n, *row].

    Raises:
        InputError: an index out of range.
    """
    rows = checked_indices(indices, table.shape[1], "the table")
    if params.scale is None:
        return (table[sample_index(table, 2), rows],)
    size = prod(table.shape[2:])
    begin = rows * size // params.per_byte * params.per_byte
    flat = table.reshape(table.shape[0], -1).view(np.int8)
    codes = flat[sample_index(table, 3), begin[..., None] + np.arange(size)]
    blocks = params.scale.shape[1]
    scale = np.repeat(params.scale, size // blocks, 1) if blocks > 1 else params.scale
    values = codes.astype(np.float32) * scale[rows]
    return (values.astype(params.dtype).reshape(*values.shape[:2], *table.shape[2:]),)


def _scales(table: Tensor, output: Tensor) -> NDArray[np.float32]:
    if not isinstance(table.quantization, Affine):
        raise UnsupportedError(f"the table '{table.name}' ({table.dtype.value}) has no scales, the output is float")
    require_sound_tensor(table)
    affine, rows = table.quantization, table.shape[0]
    if affine.scale.size > 1 and (affine.axis != 0 or affine.scale.size != rows):
        raise GraphError(f"{affine.scale.size} scales along axis {affine.axis} do not fit a table of {rows} rows")
    if affine.zero_point.size and affine.zero_point[0] and output.dtype is DType.FLOAT32:
        raise UnsupportedError(f"the table '{table.name}' has zero point {affine.zero_point[0]}; only 0 is allowed")
    return np.broadcast_to(affine.scale.astype(np.float32)[:, None], (rows, 1))


@dataclass(frozen=True)
class EmbeddingLookupSparse:
    """How to gather.

    Attributes:
        buckets: the shape of the buckets.
        combiner: "sum", "mean" or "sqrtn".
    """

    buckets: tuple[int, ...]
    combiner: str


def _lower_embedding_lookup_sparse(node: Node, operands: Operands) -> EmbeddingLookupSparse:
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


def _run_embedding_lookup_sparse(
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
    result = np.stack([_combine_rows(params, *(x[s] for x in given)) for s in range(given[0].shape[0])])
    return (result.reshape(result.shape[0], *params.buckets, *table.shape[2:]),)


def _combine_rows(
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


@dataclass(frozen=True)
class HashtableLookup:
    """Number of keys in the table."""

    rows: int


def _lower_hashtable_lookup(node: Node, operands: Operands) -> HashtableLookup:  # noqa: ARG001
    """Check the table.

    Raises:
        GraphError: keys and values that do not fit each other, or none at all.
        UnsupportedError: keys that are not int32, values of another type than the output, found that is not uint8.
    """
    wanted, keys, table = (operands.input(i) for i in range(3))
    for tensor in (wanted, keys):
        require_type(tensor, (DType.INT32,))
    require_type(operands.output(1), (DType.UINT8,))
    require_same_type(table, operands.output())
    if len(wanted.shape) != 1 or len(keys.shape) != 1 or not table.shape or table.shape[0] != keys.shape[0]:
        raise GraphError(f"keys {keys.shape}, values {table.shape} and lookups {wanted.shape} do not fit each other")
    if not keys.size or (table.dtype is DType.STRING and len(table.shape) != 1):
        raise GraphError(f"a table of shape {table.shape} cannot be looked up: it is empty, or has strings in rows")
    return HashtableLookup(keys.shape[0])


def _run_hashtable_lookup(params: HashtableLookup, wanted: Array, keys: Array, table: Array) -> tuple[Array, ...]:
    """Run HASHTABLE_LOOKUP: int32[S or 1, n], int32[S or 1, rows], T[S or 1, rows, *row] -> T[S, n, *row], uint8[S, n].

    The third array may be shared or sampled, as the first two.
    """
    wanted, keys, table = equal_samples(wanted, keys, table)
    sample = np.arange(wanted.shape[0])[:, None]
    low, high = np.zeros(wanted.shape, np.int64), np.full(wanted.shape, params.rows)
    place = np.full(wanted.shape, -1)
    while (searching := (low < high) & (place < 0)).any():
        middle = (low + high) // 2
        order = wanted - keys[sample, np.minimum(middle, params.rows - 1)]  # wraps, as the kernel's difference does
        place = np.where(searching & (order == 0), middle, place)
        high = np.where(searching & (order < 0), middle, high)
        low = np.where(searching & (order > 0), middle + 1, low)
    exists = place >= 0
    result = table[sample, np.maximum(place, 0)]
    result[~exists] = b"" if table.dtype == object else np.zeros((), table.dtype)
    return result, exists.astype(np.uint8)


KERNELS = {
    "embedding_lookup": Kernel(_lower_embedding_lookup, _run_embedding_lookup,
        "rows of the table in input 1, chosen by the indices in input 0", "TFLite kernels/embedding_lookup.cc"),
    "embedding_lookup_sparse": Kernel(_lower_embedding_lookup_sparse, _run_embedding_lookup_sparse,
        "sums of weighted rows of a table, gathered by bucket", "TFLite kernels/embedding_lookup_sparse.cc"),
    "hashtable_lookup": Kernel(_lower_hashtable_lookup, _run_hashtable_lookup,
        "the value of each key that the sorted keys hold; zeros (an empty string) where they do not",
        "TFLite kernels/hashtable_lookup.cc"),
}  # fmt: skip
