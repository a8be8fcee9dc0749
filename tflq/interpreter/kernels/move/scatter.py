"""SCATTER_ND, SPARSE_TO_DENSE and STABLEHLO_SCATTER: elements at places that indices name.

Coordinates are stored along the last axis of the indices. Sums of integers wrap; a sum of bools is true if one is. Of
equal indices of SPARSE_TO_DENSE the last wins.

STABLEHLO_SCATTER: The vectors of indices are stored along index_vector_dim of input 1; scatter_dims_to_operand_dims
names the axis of input 0 that each of their numbers indexes. update_window_dims of the updates correspond to the axes
of input 0 that are not inserted_window_dims. An update outside input 0 is left out. One computation joins the current
element with the update, in the order of the updates: the update itself, the sum, product, larger or smaller of both;
integers wrap.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.operands.checks import require_result, require_same_type, require_type
from tflq.interpreter.operands.computations import COMPUTATION, UPDATE
from tflq.interpreter.operands.movable import (
    INDEX_TYPES,
    checked_indices,
    constant_vector,
    equal_samples,
    require_movable,
    shape_of,
)
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
    """Run SPARSE_TO_DENSE: int[S or 1, n, axes], T[S or 1, n or none], T[S or 1] -> T[S, *shape].

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


_UPDATED = (
    DType.FLOAT16, DType.FLOAT32, DType.FLOAT64, DType.INT8, DType.INT16, DType.INT32, DType.INT64, DType.UINT8,
    DType.UINT16, DType.UINT32, DType.UINT64, DType.BOOL,
)  # fmt: skip
_COMPUTATIONS: dict[str, Callable[[Array, Array], Array]] = {
    UPDATE: lambda _, new: new,
    "stablehlo_add": np.add,
    "stablehlo_multiply": np.multiply,
    "stablehlo_maximum": lambda old, new: np.where(np.less(old, new), new, old),
    "stablehlo_minimum": lambda old, new: np.where(np.less(new, old), new, old),
}


@dataclass(frozen=True)
class StablehloScatter:
    """The dimension numbers of the operator, in the model's own axes.

    Attributes:
        windows: axes of the updates that correspond to axes of the input.
        kept: Axes of the input that correspond to `windows`.
        mapped: the axis of the input that each number of a vector of indices indexes.
        vector_axis: axis of the indices that contains their vectors.
        computation: "update" or the name of an operator.
    """

    windows: tuple[int, ...]
    kept: tuple[int, ...]
    mapped: tuple[int, ...]
    vector_axis: int
    computation: str


def _lower_stablehlo_scatter(node: Node, operands: Operands) -> StablehloScatter:
    """Read the dimension numbers.

    Raises:
        GraphError: numbers that do not fit the shapes.
        UnsupportedError: types that TFLite does not scatter, or a computation that it does not know.
    """
    source, indices, updates = (operands.input(i) for i in range(3))
    require_movable(node, source, operands.output(), _UPDATED)
    require_same_type(source, updates)
    require_type(indices, INDEX_TYPES)
    computation = node.attributes.text(COMPUTATION, "a graph that is not at hand")
    if computation not in _COMPUTATIONS:
        raise UnsupportedError(f"the computation is {computation}; there are {', '.join(_COMPUTATIONS)}")
    names = ("update_window_dims", "inserted_window_dims", "scatter_dims_to_operand_dims")
    windows, inserted, mapped = (node.attributes.integers(name, ()) for name in names)
    axis, rank = node.attributes.integer("index_vector_dim", 0), len(source.shape)
    kept = tuple(i for i in range(rank) if i not in inserted)
    if not 0 <= axis < len(indices.shape) or len(mapped) != indices.shape[axis] or not set(mapped) <= set(range(rank)):
        raise GraphError(f"axes {mapped} along axis {axis} of the indices {indices.shape} do not fit {source.shape}")
    batch = tuple(size for i, size in enumerate(indices.shape) if i != axis)
    outer = tuple(size for i, size in enumerate(updates.shape) if i not in windows)
    if len(windows) != len(kept) or not set(windows) <= set(range(len(updates.shape))) or outer != batch:
        raise GraphError(f"updates {updates.shape} with windows along {windows} do not fit {source.shape}, {batch}")
    return StablehloScatter(windows, kept, mapped, axis, computation)


def _run_stablehlo_scatter(params: StablehloScatter, x: Array, indices: Array, updates: Array) -> tuple[Array, ...]:
    """Run STABLEHLO_SCATTER: T[S or 1, *shape], int[S or 1, *indices], T[S or 1, *updates] -> T[S, *shape]."""
    flat = _places(params, x.shape[1:], indices, updates.shape[1:])
    old, places, new = equal_samples(x.reshape(x.shape[0], -1), flat, updates.reshape(updates.shape[0], -1))
    result = old.copy()
    compute = _COMPUTATIONS[params.computation]
    with np.errstate(all="ignore"):
        for s in range(result.shape[0]):
            inside = places[s] >= 0
            _apply(compute, result[s], places[s][inside], new[s][inside])
    return (result.reshape(result.shape[0], *x.shape[1:]),)


def _places(
    params: StablehloScatter, shape: tuple[int, ...], indices: Array, updates: tuple[int, ...]
) -> NDArray[np.int64]:
    """Return, for each element of the updates, its flat place in the input, -1 outside: int64[S or 1, elements]."""
    vectors = np.moveaxis(indices.astype(np.int64), params.vector_axis + 1, -1)
    batch = [i for i in range(len(updates)) if i not in params.windows]
    flat: NDArray[np.int64] = np.zeros((1,) * (len(updates) + 1), np.int64)
    inside = np.ones_like(flat, np.bool_)
    for axis, size in enumerate(shape):
        place: NDArray[np.int64] = np.zeros_like(flat[:1])
        if axis in params.mapped:
            last = len(params.mapped) - 1 - params.mapped[::-1].index(axis)
            broadcast = [1] * len(updates)
            for i in batch:
                broadcast[i] = updates[i]
            place = vectors[..., last].reshape(vectors.shape[0], *broadcast)
        if axis in params.kept:
            window = params.windows[params.kept.index(axis)]
            place = place + np.arange(updates[window]).reshape([-1 if i == window else 1 for i in range(len(updates))])
        inside = inside & (place >= 0) & (place < size)
        flat = flat * size + place
    whole = np.broadcast_to(np.where(inside, flat, -1), (flat.shape[0], *updates))
    return whole.reshape(flat.shape[0], prod(updates))


def _apply(compute: Callable[[Array, Array], Array], result: Array, places: Array, updates: Array) -> None:
    """Join updates into `result`, updates of one place one after another."""
    order = np.argsort(places, kind="stable")
    ordered = places[order]
    first = np.searchsorted(ordered, ordered)
    turn = np.arange(ordered.size) - first  # number of earlier updates of the same place
    for number in range(int(turn.max(initial=-1)) + 1):
        chosen = order[turn == number]
        where = places[chosen]
        result[where] = compute(result[where], updates[chosen])


KERNELS = {
    "scatter_nd": Kernel(_lower_scatter, _run_scatter,
        "zeros of the shape in input 2, plus each update at the coordinates in input 0",
        "TFLite kernels/scatter_nd.cc, internal/reference/reference_ops.h (ScatterNd)"),
    "sparse_to_dense": Kernel(_lower_dense, _run_dense,
        "default_value everywhere but at the places that the indices name",
        "TFLite kernels/sparse_to_dense.cc, internal/reference/reference_ops.h (SparseToDense)"),
    "stablehlo_scatter": Kernel(_lower_stablehlo_scatter, _run_stablehlo_scatter,
        "input 0, changed by each of the updates at a place that the indices name",
        "TFLite kernels/stablehlo_scatter.cc"),
}  # fmt: skip
