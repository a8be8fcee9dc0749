"""Sparse constants (the TACO format of the schema) as dense arrays."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from tflq.errors import FormatError
from tflq.graph import Array, DType
from tflq.limits import current
from tflq.schemas import tflite as schema


def densify(
    sparsity: schema.SparsityParameters, data: NDArray[np.uint8], shape: tuple[int, ...], dtype: DType, where: str
) -> Array:
    """Return the dense value of a sparse constant.

    The levels of the tree are the dimensions in `traversal_order`, the blocked ones (`block_map`) last. A DENSE level
    has all coordinates 0..size-1; a SPARSE_CSR level lists, for each node of the level above, those between two
    entries of `array_segments`. The leaves are the stored values in order.

    Args:
        sparsity: the file's table.
        data: stored values as bytes.
        shape: of the dense tensor.
        dtype: element type; a byte or wider.
        where: names the tensor in messages.

    Raises:
        FormatError: the levels contradict the shape, the segments each other, or the number of values.
        UnsupportedError: the dense value is larger than the limit `max_bytes`: a few stored values could else ask for
            any amount of memory.
    """
    if dtype.bits < 8 or dtype is DType.STRING:
        raise FormatError(f"{where}: a sparse constant of {dtype.value}; allowed are types of whole bytes")
    order = [] if sparsity.traversal_order is None else sparsity.traversal_order.tolist()
    blocked = [] if sparsity.block_map is None else sparsity.block_map.tolist()
    levels = sparsity.dim_metadata or []
    if sorted(order) != list(range(len(shape) + len(blocked))) or len(levels) != len(order):
        raise FormatError(f"{where}: traversal order {order} and {len(levels)} levels do not fit the shape {shape}")
    if any(not 0 <= axis < len(shape) for axis in blocked):
        raise FormatError(f"{where}: block map {blocked} names axes outside the shape {shape}")
    current().require("max_bytes", math.prod(shape) * dtype.storage.itemsize, f"{where}: bytes of the dense value")
    coordinates = _leaves(levels, math.prod(shape), where)
    values = data.view(dtype.storage) if data.size % dtype.storage.itemsize == 0 else data[:0].view(dtype.storage)
    if values.size != coordinates.shape[1]:
        raise FormatError(f"{where}: the levels name {coordinates.shape[1]} values, the buffer holds {values.size}")
    position = np.zeros((len(shape), values.size), np.int64)
    for level, axis in enumerate(order):
        if axis < len(shape):
            position[axis] += coordinates[level] * _block_size(levels, order, blocked, axis, len(shape))
        else:
            position[blocked[axis - len(shape)]] += coordinates[level]
    if values.size and ((position < 0) | (position >= np.array(shape)[:, None])).any():
        raise FormatError(f"{where}: a stored value lies outside the shape {shape}")
    dense = np.zeros(shape, dtype.storage)
    dense[tuple(position)] = values
    dense.setflags(write=False)
    return dense


def block_of(sparsity: schema.SparsityParameters, rank: int) -> tuple[int, ...]:
    """Return the size of a block along each axis; () where rows are no dense level with sparse ones inside, in order.

    Args:
        sparsity: a table that `densify` takes.
        rank: of the dense tensor.
    """
    order = [] if sparsity.traversal_order is None else sparsity.traversal_order.tolist()
    blocked = [] if sparsity.block_map is None else sparsity.block_map.tolist()
    levels = sparsity.dim_metadata or []
    kinds = [level.format for level in levels[:rank]]
    rows = [schema.DimensionType.DENSE, *[schema.DimensionType.SPARSE_CSR] * (rank - 1)]
    if order[:rank] != list(range(rank)) or kinds != rows:
        return ()
    return tuple(_block_size(levels, order, blocked, axis, rank) for axis in range(rank))


def _block_size(
    levels: list[schema.DimensionMetadata], order: list[int], blocked: list[int], axis: int, rank: int
) -> int:
    if axis not in blocked:
        return 1
    return levels[order.index(rank + blocked.index(axis))].dense_size


def _leaves(levels: list[schema.DimensionMetadata], most: int, where: str) -> NDArray[np.int64]:
    """Return the coordinates of all leaves: int64[level, leaf]; no level has more than `most` nodes."""
    paths = np.zeros((0, 1), np.int64)
    for level in levels:
        if level.format is schema.DimensionType.DENSE:
            if level.dense_size < 0 or paths.shape[1] * level.dense_size > most:
                raise FormatError(
                    f"{where}: a dense level has size {level.dense_size} below {paths.shape[1]} parents; the dense "
                    f"value has {most} elements"
                )
            parents = np.repeat(np.arange(paths.shape[1]), level.dense_size)
            own = np.tile(np.arange(level.dense_size), paths.shape[1])
        else:
            parents, own = _sparse_level(level, paths.shape[1], where)
        paths = np.concatenate([paths[:, parents], own[None]])
    return paths


def _sparse_level(
    level: schema.DimensionMetadata, count: int, where: str
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    segments, indices = _values(level.array_segments), _values(level.array_indices)
    lengths = np.diff(segments)
    if segments.size != count + 1 or (lengths < 0).any() or segments[0] != 0 or segments[-1] != indices.size:
        raise FormatError(f"{where}: the segments of a sparse level do not fit {count} parents and its indices")
    return np.repeat(np.arange(count), lengths), indices


def _values(vector: object) -> NDArray[np.int64]:
    if isinstance(vector, (schema.Int32Vector, schema.Uint16Vector, schema.Uint8Vector)) and vector.values is not None:
        return vector.values.astype(np.int64)
    return np.zeros(0, np.int64)
