"""ONE_HOT: for each index a row of `depth` elements: on_value at the index, off_value elsewhere.

An index outside 0..depth-1 gives off_value only; an index of int64 counts by its low 32 bits, as TFLite casts it.

Source: TFLite kernels/one_hot.cc.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import GraphError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.operands.checks import require_result, require_same_type, require_type
from tflq.interpreter.operands.movable import INDEX_TYPES, constant_number, require_movable, shape_of

TYPES = (DType.FLOAT32, DType.INT32, DType.INT64, DType.INT8, DType.UINT8, DType.BOOL)


@dataclass(frozen=True)
class OneHot:
    """The new axis.

    Attributes:
        axis: counted from 0 in the model's own shape of the output.
        depth: its length.
    """

    axis: int
    depth: int


def lower(node: Node, operands: Operands) -> OneHot:
    """Decide the new axis.

    Raises:
        GraphError: an axis out of range, a negative depth or one computed at run time, values that are not single.
        UnsupportedError: types that differ, or that TFLite does not take.
    """
    indices, on_value, off_value = operands.input(0), operands.input(2), operands.input(3)
    require_type(indices, INDEX_TYPES)
    require_movable(node, on_value, operands.output(), TYPES)
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


def run(params: OneHot, indices: Array, _depth: Array | None, on_value: Array, off_value: Array) -> tuple[Array, ...]:
    """Run ONE_HOT: int[S or 1, *shape], T[S or 1], T[S or 1] -> T[S, *shape with an axis of depth]."""
    axis = params.axis + 1
    places = np.arange(params.depth, dtype=np.int32).reshape(-1, *(1,) * (indices.ndim - axis))
    chosen = np.expand_dims(indices.astype(np.int32), axis) == places
    on, off = (value.reshape(-1, *(1,) * (chosen.ndim - 1)) for value in (on_value, off_value))
    return (np.where(chosen, on, off),)
