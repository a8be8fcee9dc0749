"""DYNAMIC_UPDATE_SLICE: input 0 with the box in input 1 laid over it, from the indices in input 2 on.

Indices that would push the box over an edge are moved back inside.

Source: TFLite kernels/dynamic_update_slice.cc.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.operands.checks import MAXIMUM_RANK, require_same_type, require_type
from tflq.interpreter.operands.indexing import equal_samples
from tflq.interpreter.operands.movable import INDEX_TYPES, require_movable

TYPES = tuple(dtype for dtype in DType if dtype.bits >= 8 or dtype is DType.INT4)


@dataclass(frozen=True)
class DynamicUpdateSlice:
    """Largest first index of the box along each of the model's own axes."""

    last: tuple[int, ...]


def lower(node: Node, operands: Operands) -> DynamicUpdateSlice:
    """Decide how far the box may go.

    Raises:
        GraphError: a box that does not fit, or another number of indices than axes.
        UnsupportedError: more than 8 axes, or types that differ or TFLite does not move.
    """
    source, box, start = (operands.input(i) for i in range(3))
    require_movable(node, source, operands.output(), TYPES)
    require_same_type(source, box)
    require_type(start, INDEX_TYPES)
    if len(source.shape) > MAXIMUM_RANK:
        raise UnsupportedError(f"the input has {len(source.shape)} axes; TFLite takes up to {MAXIMUM_RANK}")
    fits = len(box.shape) == len(source.shape) and all(b <= n for b, n in zip(box.shape, source.shape, strict=True))
    if not fits or start.shape != (len(source.shape),):
        raise GraphError(f"a box of {box.shape} from indices of shape {start.shape} on does not fit {source.shape}")
    return DynamicUpdateSlice(tuple(n - b for b, n in zip(box.shape, source.shape, strict=True)))


def run(params: DynamicUpdateSlice, x: Array, box: Array, start: Array) -> tuple[Array, ...]:
    """Run DYNAMIC_UPDATE_SLICE: T[S or 1, *shape], T[S or 1, *box], int[S or 1, rank] -> T[S, *shape]."""
    first = np.clip(start.astype(np.int64), 0, np.array(params.last, np.int64))
    result, boxes = equal_samples(x, box)
    if first.shape[0] == 1:
        result = result.copy()
        everywhere = (slice(None), *_box(first[0], boxes))
        result[everywhere] = boxes
        return (result,)
    result, boxes, first = (array.copy() for array in equal_samples(result, boxes, first))
    for sample in range(result.shape[0]):
        result[sample][_box(first[sample], boxes)] = boxes[sample]
    return (result,)


def _box(first: Array, boxes: Array) -> tuple[slice, ...]:
    return tuple(slice(int(f), int(f) + size) for f, size in zip(first.tolist(), boxes.shape[1:], strict=True))
