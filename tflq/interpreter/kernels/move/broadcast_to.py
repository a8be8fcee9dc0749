"""BROADCAST_TO: the input repeated along axes of length 1, and along new ones in front, up to the shape in input 1.

Source: TFLite kernels/broadcast_to.cc.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.operands.checks import MAXIMUM_RANK
from tflq.interpreter.operands.movable import constant_vector, require_movable, shape_of
from tflq.interpreter.operands.result_size import require_result

TYPES = tuple(dtype for dtype in DType if dtype.bits >= 8)


@dataclass(frozen=True)
class BroadcastTo:
    """The new shape, of the model's own axes."""

    shape: tuple[int, ...]


def lower(node: Node, operands: Operands) -> BroadcastTo:
    """Decide the shape.

    Raises:
        GraphError: a shape that the input does not broadcast to, or computed at run time.
        UnsupportedError: more than 8 axes, strings, or types that differ.
    """
    source = operands.input(0)
    require_movable(node, source, operands.output(), TYPES)
    shape = shape_of(constant_vector(operands, 1), "the new shape")
    if len(shape) > MAXIMUM_RANK:
        raise UnsupportedError(f"the new shape {shape} has {len(shape)} axes; TFLite broadcasts up to {MAXIMUM_RANK}")
    behind = shape[len(shape) - len(source.shape) :] if len(shape) >= len(source.shape) else None
    if behind is None or any(old not in (1, new) for old, new in zip(source.shape, behind, strict=True)):
        raise GraphError(f"the input's shape {source.shape} does not broadcast to {shape}")
    require_result(shape, source.dtype)
    return BroadcastTo(shape)


def run(params: BroadcastTo, x: Array, *_shape: Array) -> tuple[Array, ...]:
    """Run BROADCAST_TO: T[S, *shape] -> T[S, *new shape], a view of the input."""
    aligned = x.reshape(x.shape[0], *(1,) * (len(params.shape) + 1 - x.ndim), *x.shape[1:])
    return (np.broadcast_to(aligned, (x.shape[0], *params.shape)),)
