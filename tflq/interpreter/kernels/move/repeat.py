"""BROADCAST_TO, TILE, FILL, RANGE and ONE_HOT: tensors of elements that are repeated, or follow from a few numbers.

RANGE: The number of elements is ceil(|limit - start| / |delta|), for floats in float32.

ONE_HOT: An index outside 0..depth-1 yields off_value only; an index of int64 counts by its low 32 bits, as TFLite casts
it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.operands.checks import MAXIMUM_RANK, require_result, require_same_type, require_type
from tflq.interpreter.operands.movable import (
    FIXED_SIZE,
    INDEX_TYPES,
    WHOLE_BYTES,
    constant_number,
    constant_vector,
    require_movable,
    require_same_quantization,
    require_symmetric_int16,
    shape_of,
)
from tflq.interpreter.registry import Kernel


@dataclass(frozen=True)
class Spread:
    """The shape of the result, of the model's own axes."""

    shape: tuple[int, ...]


def _lower_broadcast_to(node: Node, operands: Operands) -> Spread:
    """Decide the shape.

    Raises:
        GraphError: a shape that the input does not broadcast to, or computed at run time.
        UnsupportedError: more than 8 axes, strings, or types that differ.
    """
    source = operands.input(0)
    require_movable(node, source, operands.output(), WHOLE_BYTES)
    shape = shape_of(constant_vector(operands, 1), "the new shape")
    if len(shape) > MAXIMUM_RANK:
        raise UnsupportedError(f"the new shape {shape} has {len(shape)} axes; TFLite broadcasts up to {MAXIMUM_RANK}")
    behind = shape[len(shape) - len(source.shape) :] if len(shape) >= len(source.shape) else None
    if behind is None or any(old not in (1, new) for old, new in zip(source.shape, behind, strict=True)):
        raise GraphError(f"the input's shape {source.shape} does not broadcast to {shape}")
    require_result(shape, source.dtype)
    return Spread(shape)


def _run_broadcast_to(params: Spread, x: Array, *_shape: Array) -> tuple[Array, ...]:
    """Run BROADCAST_TO: T[S, *shape] -> T[S, *new shape], a view of the input."""
    aligned = x.reshape(x.shape[0], *(1,) * (len(params.shape) + 1 - x.ndim), *x.shape[1:])
    return (np.broadcast_to(aligned, (x.shape[0], *params.shape)),)


@dataclass(frozen=True)
class Tile:
    """How often, along each of the model's own axes."""

    multiples: tuple[int, ...]


def _lower_tile(node: Node, operands: Operands) -> Tile:
    """Decide the repetitions.

    Raises:
        GraphError: another number of them than axes, a negative one, or computed at run time.
        UnsupportedError: a type that TFLite does not tile.
    """
    source = operands.input(0)
    require_movable(node, source, operands.output(), (*FIXED_SIZE, DType.STRING))
    multiples = constant_vector(operands, 1)
    if len(multiples) != len(source.shape) or min(multiples, default=0) < 0:
        raise GraphError(f"multiples are {multiples}; {source.shape} needs one for each axis, 0 or more")
    require_result([size * times for size, times in zip(source.shape, multiples, strict=True)], source.dtype)
    return Tile(multiples)


def _run_tile(params: Tile, x: Array, *_multiples: Array) -> tuple[Array, ...]:
    """Run TILE: T[S, *shape] -> T[S, *shape * multiples]."""
    return (np.tile(x, (1, *params.multiples)),)


def _lower_fill(node: Node, operands: Operands) -> Spread:
    """Decide the shape.

    Raises:
        GraphError: a negative size, a shape computed at run time, or a value that is no scalar.
        UnsupportedError: types or quantizations that differ, or that TFLite does not fill.
    """
    value = operands.input(1)
    require_movable(node, value, operands.output(), (*FIXED_SIZE, DType.STRING))
    require_same_quantization(node, value, operands.output())
    require_symmetric_int16(node, value)
    if value.shape:
        raise GraphError(f"the value '{value.name}' has shape {value.shape}; a scalar is needed")
    shape = shape_of(constant_vector(operands, 0), "the shape to fill")
    require_result(shape, value.dtype)
    return Spread(shape)


def _run_fill(params: Spread, _shape: Array | None, value: Array) -> tuple[Array, ...]:
    """Run FILL: T[S] -> T[S, *shape], a view of the value."""
    scalar = value.reshape(-1, *(1,) * len(params.shape))
    return (np.broadcast_to(scalar, (value.shape[0], *params.shape)),)


@dataclass(frozen=True, eq=False)
class Range:
    """The numbers: T[n]."""

    values: Array


def _lower_range(node: Node, operands: Operands) -> Range:  # noqa: ARG001
    """Compute the numbers.

    Raises:
        GraphError: operands that are no scalars or computed at run time, a delta of 0 or away from the limit.
        UnsupportedError: other types than int32, int64 and float32.
    """
    tensors = [operands.input(i) for i in range(3)]
    dtype = require_type(tensors[0], (DType.INT32, DType.INT64, DType.FLOAT32))
    require_same_type(*tensors, operands.output())
    if any(tensor.shape for tensor in tensors):
        raise GraphError("start, limit and delta are scalars; one has another shape")
    start, limit, delta = (operands.constant(i).reshape(())[()] for i in range(3))
    if not ((start >= limit and delta < 0) or (start <= limit and delta > 0)):  # type: ignore[operator]
        raise GraphError(
            f"start {start}, limit {limit} and delta {delta}: delta leads from start to limit, and is not 0"
        )
    if dtype is DType.FLOAT32:
        with np.errstate(all="ignore"):
            count = float(np.ceil(np.abs((limit - start) / delta)))  # type: ignore[operator]
        if not count <= np.iinfo(np.int32).max:
            raise GraphError(f"start {start}, limit {limit} and delta {delta} give {count} elements")
    else:
        count = -(-abs(int(limit) - int(start)) // abs(int(delta)))
    require_result((int(count),), dtype)
    steps = np.full(int(count), delta, dtype.storage)
    steps[:1] = start
    return Range(np.add.accumulate(steps, dtype=dtype.storage))


def _run_range(params: Range, *_operands: Array) -> tuple[Array, ...]:
    """Run RANGE: -> T[1, n], shared by all samples."""
    return (params.values[None],)


_MARKED = (DType.FLOAT32, DType.INT32, DType.INT64, DType.INT8, DType.UINT8, DType.BOOL)


@dataclass(frozen=True)
class OneHot:
    """The new axis.

    Attributes:
        axis: counted from 0 in the model's own shape of the output.
        depth: Length of the axis.
    """

    axis: int
    depth: int


def _lower_one_hot(node: Node, operands: Operands) -> OneHot:
    """Decide the new axis.

    Raises:
        GraphError: an axis out of range, a negative depth or one computed at run time, values that are not single.
        UnsupportedError: types that differ, or that TFLite does not take.
    """
    indices, on_value, off_value = operands.input(0), operands.input(2), operands.input(3)
    require_type(indices, INDEX_TYPES)
    require_movable(node, on_value, operands.output(), _MARKED)
    require_same_type(on_value, off_value)
    if on_value.size != 1 or off_value.size != 1:
        raise GraphError(f"on and off value have {on_value.size} and {off_value.size} elements; one each is needed")
    rank = len(indices.shape)
    axis = node.attributes.integer("axis", 0)
    axis = rank if axis == -1 else axis
    if not 0 <= axis <= rank:
        raise GraphError(f"axis {axis} is out of range; the output has {rank + 1} axes: 0..{rank}, or -1 for the last")
    (depth,) = shape_of((constant_number(operands, 1),), "the depth")
    require_result((*indices.shape, depth), on_value.dtype)
    return OneHot(axis, depth)


def _run_one_hot(
    params: OneHot, indices: Array, _depth: Array | None, on_value: Array, off_value: Array
) -> tuple[Array, ...]:
    """Run ONE_HOT: int[S or 1, *shape], T[S or 1], T[S or 1] -> T[S, *shape with an axis of depth]."""
    axis = params.axis + 1
    places = np.arange(params.depth, dtype=np.int32).reshape(-1, *(1,) * (indices.ndim - axis))
    chosen = np.expand_dims(indices.astype(np.int32), axis) == places
    on, off = (value.reshape(-1, *(1,) * (chosen.ndim - 1)) for value in (on_value, off_value))
    return (np.where(chosen, on, off),)


KERNELS = {
    "broadcast_to": Kernel(_lower_broadcast_to, _run_broadcast_to,
        "repeated along axes of length 1, and along new ones in front, up to the shape in input 1",
        "TFLite kernels/broadcast_to.cc"),
    "tile": Kernel(_lower_tile, _run_tile,
        "the input repeated along each axis, as often as input 1 says", "TFLite kernels/tile.cc"),
    "fill": Kernel(_lower_fill, _run_fill,
        "one value everywhere, in the shape that input 0 gives", "TFLite kernels/fill.cc"),
    "range": Kernel(_lower_range, _run_range,
        "start, start + delta, ... below limit (above it where delta is negative), each from the one before",
        "TFLite kernels/range.cc"),
    "one_hot": Kernel(_lower_one_hot, _run_one_hot,
        "for each index a row of `depth` elements: on_value at the index, off_value elsewhere",
        "TFLite kernels/one_hot.cc"),
}  # fmt: skip
