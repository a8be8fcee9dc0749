"""STABLEHLO_GATHER: boxes of slice_sizes from input 0, each from the indices in input 1 on, moved back inside.

The vectors of indices lie along index_vector_dim of input 1; start_index_map names the axis of the input that each of
their numbers indexes. collapsed_slice_dims are dropped from the boxes; what is left of them lies along offset_dims of
the result, and the other axes of input 1 along its other axes. TFLite crashes where index_vector_dim is the rank of
input 1, which stands for single numbers: refused.

Source: TFLite kernels/stablehlo_gather.cc.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import GraphError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.operands.checks import require_type
from tflq.interpreter.operands.indexing import sample_index
from tflq.interpreter.operands.movable import FIXED_SIZE, INDEX_TYPES, require_movable
from tflq.interpreter.operands.result_size import require_result


@dataclass(frozen=True)
class StablehloGather:
    """The dimension numbers of the operator, in the model's own axes.

    Attributes:
        sizes: of a box.
        collapsed: axes of the box that are dropped.
        mapped: the axis of the input that each number of a vector of indices indexes.
        vector_axis: axis of the indices along which their vectors lie.
        offsets: axes of the result along which the boxes lie.
    """

    sizes: tuple[int, ...]
    collapsed: tuple[int, ...]
    mapped: tuple[int, ...]
    vector_axis: int
    offsets: tuple[int, ...]


def lower(node: Node, operands: Operands) -> StablehloGather:
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


def run(params: StablehloGather, x: Array, indices: Array) -> tuple[Array, ...]:
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
