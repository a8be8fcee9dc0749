"""BROADCAST_TO, TILE and FILL: elements repeated along axes.

BROADCAST_TO: repeated along axes of length 1, and along new ones in front, up to the shape in input 1. Source: TFLite
kernels/broadcast_to.cc.
TILE: the input repeated along each axis, as often as input 1 says. Source: TFLite kernels/tile.cc.
FILL: one value everywhere, in the shape that input 0 gives. Source: TFLite kernels/fill.cc.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.operands.checks import MAXIMUM_RANK, require_result
from tflq.interpreter.operands.movable import (
    FIXED_SIZE,
    WHOLE_BYTES,
    constant_vector,
    require_movable,
    require_same_quantisation,
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
        UnsupportedError: types or quantisations that differ, or that TFLite does not fill.
    """
    value = operands.input(1)
    require_movable(node, value, operands.output(), (*FIXED_SIZE, DType.STRING))
    require_same_quantisation(node, value, operands.output())
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


KERNELS = {
    "broadcast_to": Kernel(_lower_broadcast_to, _run_broadcast_to),
    "tile": Kernel(_lower_tile, _run_tile),
    "fill": Kernel(_lower_fill, _run_fill),
}
