"""GATHER, GATHER_ND and STABLEHLO_GATHER: slices and boxes of input 0, chosen by indices.

GATHER: With batch_dims b the first b axes of both are the same batches: each batch has its own indices.

STABLEHLO_GATHER: The vectors of indices are stored along index_vector_dim of input 1; start_index_map names the axis of
the input that each of their numbers indexes. collapsed_slice_dims are dropped from the boxes; their remaining axes are
offset_dims of the result, and the other axes of input 1 are its other axes. TFLite crashes if index_vector_dim is the
rank of input 1 (single numbers instead of vectors): refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Array, DType, Node, Operands, Tensor
from tflq.interpreter.operands.checks import require_result, require_type, resolve_axis
from tflq.interpreter.operands.movable import FIXED_SIZE, INDEX_TYPES, checked_indices, require_movable, sample_index
from tflq.interpreter.registry import Kernel

_GATHERED = (
    DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16, DType.FLOAT8_E4M3FN, DType.FLOAT8_E5M2, DType.UINT8, DType.INT4,
    DType.INT8, DType.INT16, DType.INT32, DType.INT64, DType.BOOL, DType.STRING,
)  # fmt: skip
INDICES = (DType.INT16, DType.INT32, DType.INT64)


@dataclass(frozen=True)
class Gather:
    """Axes of the gather, in the model's own axes.

    Attributes:
        axis: counted from 0.
        batch_dims: number of leading axes that are batches.
    """

    axis: int
    batch_dims: int


def lower_gather(node: Node, operands: Operands) -> Gather:
    """Decide axis and batches.

    Raises:
        GraphError: an axis out of range, batches that differ.
        UnsupportedError: a type that TFLite does not gather.
    """
    source, indices = operands.input(0), operands.input(1)
    require_type(indices, INDICES)
    dtype = require_movable(node, source, operands.output(), _GATHERED)
    axis = resolve_axis(node.attributes.integer("axis", 0), len(source.shape))
    batch_dims = node.attributes.integer("batch_dims", 0)
    batch_dims += len(indices.shape) * (batch_dims < 0)
    if not 0 <= batch_dims <= min(axis, len(indices.shape)):
        raise GraphError(f"batch_dims is {batch_dims}; 0 to the axis {axis} and the rank of the indices are allowed")
    if source.shape[:batch_dims] != indices.shape[:batch_dims]:
        raise GraphError(f"shapes {source.shape} and {indices.shape} differ in the first {batch_dims} axes")
    if dtype is DType.STRING and len(source.shape) != 1:
        raise UnsupportedError(f"strings have shape {source.shape}; TFLite gathers them from a vector only")
    if dtype is DType.INT4:
        _require_whole_bytes(source, axis)
    places = indices.shape[batch_dims:]
    require_result((*source.shape[:axis], *places, *source.shape[axis + 1 :]), dtype)
    return Gather(axis, batch_dims)


def run_gather(params: Gather, x: Array, indices: Array) -> tuple[Array, ...]:
    """Run GATHER: T[S or 1, *B, *outer, N, *inner], [S or 1, *B, *places] -> T[S, *B, *outer, *places, *inner].

    Raises:
        InputError: an index out of range.
    """
    axis, batches = params.axis + 1, params.batch_dims + 1
    chosen = checked_indices(indices, x.shape[axis], f"axis {params.axis} of the input")
    outer, places, inner = x.shape[batches:axis], indices.shape[batches:], x.shape[axis + 1 :]
    if batches == 1 and chosen.shape[0] == 1:
        return (np.take(x, chosen[0], axis),)
    batch = prod(x.shape[1:batches])
    data = x.reshape(x.shape[0], batch, prod(outer), x.shape[axis], prod(inner))
    result = data[
        sample_index(x, 4),
        np.arange(batch)[:, None, None],
        np.arange(prod(outer))[:, None],
        chosen.reshape(chosen.shape[0], batch, 1, prod(places)),
    ]
    return (result.reshape(result.shape[0], *x.shape[1:axis], *places, *inner),)


def _require_whole_bytes(source: Tensor, axis: int) -> None:
    inner = prod(source.shape[axis + 1 :])
    if inner % 2:
        raise UnsupportedError(f"slices of {inner} int4 elements do not fill whole bytes; TFLite gathers bytes")


_GATHERED_ND = (
    DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16, DType.FLOAT8_E4M3FN, DType.FLOAT8_E5M2, DType.UINT8, DType.INT8,
    DType.INT16, DType.INT32, DType.INT64, DType.BOOL, DType.STRING,
)  # fmt: skip
_INDICES = (DType.INT16, DType.INT32, DType.INT64)


@dataclass(frozen=True)
class GatherNd:
    """Number of axes that the coordinates index."""

    axes: int


def lower_gather_nd(node: Node, operands: Operands) -> GatherNd:
    """Decide how many axes are indexed.

    Raises:
        GraphError: scalars, no coordinate, or more coordinates than axes.
        UnsupportedError: a type that TFLite does not gather.
    """
    source, indices = operands.input(0), operands.input(1)
    require_type(indices, _INDICES)
    require_movable(node, source, operands.output(), _GATHERED_ND)
    if not source.shape or not indices.shape or not 1 <= indices.shape[-1] <= len(source.shape):
        raise GraphError(f"indices of shape {indices.shape} do not index an input of shape {source.shape}")
    require_result((*indices.shape[:-1], *source.shape[indices.shape[-1] :]), source.dtype)
    return GatherNd(indices.shape[-1])


def run_gather_nd(params: GatherNd, x: Array, indices: Array) -> tuple[Array, ...]:
    """Run GATHER_ND: T[S or 1, *indexed, *inner], [S or 1, *places, n] -> T[S, *places, *inner].

    Raises:
        InputError: an index out of range.
    """
    coordinates = [
        checked_indices(indices[..., i], x.shape[i + 1], f"axis {i} of the input") for i in range(params.axes)
    ]
    where = (sample_index(x, indices.ndim - 1), *coordinates)
    return (x[where],)


@dataclass(frozen=True)
class StablehloGather:
    """The dimension numbers of the operator, in the model's own axes.

    Attributes:
        sizes: Sizes of a box.
        collapsed: axes of the box that are dropped.
        mapped: the axis of the input that each number of a vector of indices indexes.
        vector_axis: axis of the indices that contains their vectors.
        offsets: axes of the result that contain the boxes.
    """

    sizes: tuple[int, ...]
    collapsed: tuple[int, ...]
    mapped: tuple[int, ...]
    vector_axis: int
    offsets: tuple[int, ...]


def _lower_stablehlo_gather(node: Node, operands: Operands) -> StablehloGather:
    """Read the dimension numbers.

    Raises:
        GraphError: numbers that do not fit the shapes.
        UnsupportedError: types that TFLite does not gather.
    """
    source, indices = operands.input(0), operands.input(1)
    require_movable(node, source, operands.output(), FIXED_SIZE)
    require_type(indices, INDEX_TYPES)
    names = ("slice_sizes", "collapsed_slice_dims", "start_index_map", "offset_dims")
    sizes, collapsed, mapped, offsets = (node.attributes.integers(name, ()) for name in names)
    axis, rank = node.attributes.integer("index_vector_dim", 0), len(source.shape)
    if len(sizes) != rank or any(not 0 <= size <= n for size, n in zip(sizes, source.shape, strict=True)):
        raise GraphError(f"slice_sizes {sizes} do not fit an input of shape {source.shape}")
    if not 0 <= axis < len(indices.shape) or not set(collapsed) | set(mapped) <= set(range(rank)):
        raise GraphError(
            f"index_vector_dim {axis}, axes {collapsed} and {mapped} do not fit {indices.shape}, rank {rank}"
        )
    length = indices.shape[axis]
    total = len(indices.shape) - 1 + len(offsets)
    if len(mapped) != length or len(set(collapsed)) + len(offsets) != rank or not set(offsets) <= set(range(total)):
        raise GraphError(f"start_index_map {mapped} and offset_dims {offsets} do not fit {length} indices, rank {rank}")
    if any(sizes[i] != 1 for i in collapsed):
        raise GraphError(f"slice_sizes {sizes} are not 1 where collapsed_slice_dims {collapsed} drop an axis")
    places = [n for i, n in enumerate(indices.shape) if i != axis]
    require_result((*places, *sizes), source.dtype)
    return StablehloGather(sizes, collapsed, mapped, axis, offsets)


def _run_stablehlo_gather(params: StablehloGather, x: Array, indices: Array) -> tuple[Array, ...]:
    """Run STABLEHLO_GATHER: T[S or 1, *shape], int[S or 1, *indices] -> T[S, *result]."""
    vectors = np.moveaxis(indices.astype(np.int64), params.vector_axis + 1, -1)
    kept = [i for i in range(x.ndim - 1) if i not in params.collapsed]
    places: list[Array] = [sample_index(x, vectors.ndim - 1 + len(kept))]
    for i, (size, length) in enumerate(zip(params.sizes, x.shape[1:], strict=True)):
        first = np.zeros((1,) * (vectors.ndim - 1), np.int64)
        if i in params.mapped:
            first = np.clip(vectors[..., params.mapped.index(i)], 0, length - size)
        shape = [1] * len(kept)
        if i in kept:
            shape[kept.index(i)] = size
        places.append(first.reshape(*first.shape, *(1,) * len(kept)) + np.arange(size).reshape(shape))
    where = tuple(np.broadcast_arrays(*places)) if x.size else tuple(places)
    result = x[where]
    batch = vectors.ndim - 1
    target = tuple(offset + 1 for offset in sorted(params.offsets))
    return (np.moveaxis(result, tuple(range(batch, batch + len(kept))), target),)


KERNELS = {
    "gather": Kernel(lower_gather, run_gather,
        "slices of input 0 along an axis, chosen by the indices in input 1",
        "TFLite kernels/gather.cc and internal/reference/gather.h"),
    "gather_nd": Kernel(lower_gather_nd, run_gather_nd,
        "slices of input 0, each chosen by the coordinates in the last axis of input 1",
        "TFLite kernels/gather_nd.cc and internal/reference/reference_ops.h (GatherNd)"),
    "stablehlo_gather": Kernel(_lower_stablehlo_gather, _run_stablehlo_gather,
        "boxes of slice_sizes from input 0, each from the indices in input 1 on, moved back inside",
        "TFLite kernels/stablehlo_gather.cc"),
}  # fmt: skip
