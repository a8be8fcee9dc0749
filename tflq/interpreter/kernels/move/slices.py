"""SLICE, STRIDED_SLICE and DYNAMIC_UPDATE_SLICE: a box of a tensor, cut out or replaced.

STRIDED_SLICE: The five masks have one bit for each entry of begin, end and stride (not for each axis of the input):
begin and end replace a bound by the edge, ellipsis denotes the axes that the entries do not name, new_axis adds an axis
of length 1, shrink_axis takes one index and drops the axis. With the option `offset`, the end counts from the begin.

Its quirk: an ellipsis always covers one axis at least.

DYNAMIC_UPDATE_SLICE: Indices that would push the box over an edge are moved back inside.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Array, DType, Node, Operands, Tensor
from tflq.interpreter.operands.checks import MAXIMUM_RANK, require_same_type, require_type
from tflq.interpreter.operands.movable import (
    FIXED_SIZE,
    INDEX_TYPES,
    WHOLE_BYTES,
    constant_vector,
    equal_samples,
    require_movable,
)
from tflq.interpreter.registry import Kernel


@dataclass(frozen=True)
class Slice:
    """The box, in the model's own axes.

    Attributes:
        begin: first index along each axis.
        size: length along each axis.
    """

    begin: tuple[int, ...]
    size: tuple[int, ...]


def _lower_slice(node: Node, operands: Operands) -> Slice:
    """Decide the box.

    Raises:
        GraphError: a box that is not inside the input, or computed at run time.
        UnsupportedError: a type that TFLite does not slice, or begin and size of two types, which it would misread.
    """
    source = operands.input(0)
    require_movable(node, source, operands.output(), (*FIXED_SIZE, DType.STRING, DType.INT4))
    require_same_type(operands.input(1), operands.input(2))
    begin, size = constant_vector(operands, 1), constant_vector(operands, 2)
    if not len(begin) == len(size) == len(source.shape):
        raise GraphError(f"begin {begin} and size {size} need one number for each axis of {source.shape}")
    lengths = tuple(n - b if s == -1 else s for b, s, n in zip(begin, size, source.shape, strict=True))
    for b, length, n in zip(begin, lengths, source.shape, strict=True):
        if b < 0 or length < 0 or b + length > n:
            raise GraphError(f"begin {begin} and size {size} leave the input's shape {source.shape}")
    return Slice(begin, lengths)


def _run_slice(params: Slice, x: Array, *_box: Array) -> tuple[Array, ...]:
    """Run SLICE: T[S, *shape] -> T[S, *size], a view of the input."""
    box = (slice(b, b + size) for b, size in zip(params.begin, params.size, strict=True))
    where = (slice(None), *box)
    return (x[where],)


MAXIMUM_ENTRIES = 31
"""TFLite's masks have room for no more."""
_WHOLE, _NEW = -1, -2


@dataclass(frozen=True)
class StridedSlice:
    """The indices, one entry for each axis after the sample axis that indexing sees.

    Attributes:
        picks: (start, stop, stride) with stop None for the edge; an index; or None for a new axis.
    """

    picks: tuple[tuple[int, int | None, int] | int | None, ...]


@dataclass(frozen=True)
class _Entries:
    """The vectors and masks of the file: the three vectors and the masks."""

    begin: tuple[int, ...]
    end: tuple[int, ...]
    stride: tuple[int, ...]
    begin_mask: int
    end_mask: int
    shrink_mask: int
    offset: bool


def lower_strided_slice(node: Node, operands: Operands) -> StridedSlice:
    """Decide the indices.

    Raises:
        GraphError: vectors of unequal length or computed at run time, a stride of 0, an index outside its axis.
        UnsupportedError: a type that TFLite does not slice.
    """
    source = operands.input(0)
    require_movable(node, source, operands.output(), (*FIXED_SIZE, DType.STRING))
    begin, end, stride = (constant_vector(operands, i, (DType.INT32,)) for i in (1, 2, 3))
    if not len(begin) == len(end) == len(stride) <= MAXIMUM_ENTRIES:
        raise GraphError(f"begin {begin}, end {end} and strides {stride} need equal lengths up to {MAXIMUM_ENTRIES}")
    if 0 in stride:
        raise GraphError(f"strides are {stride}; a stride is not 0")
    masks = {name: node.attributes.integer(f"{name}_mask", 0) for name in ("begin", "end", "shrink_axis")}
    offset = node.attributes.boolean("offset", False)
    entries = _Entries(begin, end, stride, masks["begin"], masks["end"], masks["shrink_axis"], offset)
    return StridedSlice(_picks(_expand_entries(node, len(source.shape), len(begin)), entries, source))


def _run_strided_slice(params: StridedSlice, x: Array, *_entries: Array) -> tuple[Array, ...]:
    """Run STRIDED_SLICE: T[S, *shape] -> T[S, *taken], a view of the input."""
    picks = (slice(*pick) if isinstance(pick, tuple) else pick for pick in params.picks)
    where = (slice(None), *picks)
    return (x[where],)


def _expand_entries(node: Node, rank: int, count: int) -> list[int]:
    """Return, for each axis of the input with new axes added, the entry that rules it, _WHOLE or _NEW."""
    ellipsis, new = (node.attributes.integer(f"{name}_mask", 0) for name in ("ellipsis", "new_axis"))
    ellipsis &= (1 << count) - 1
    total = rank + ((new & ~ellipsis) & ((1 << count) - 1)).bit_count()
    axes: list[int] = []
    hidden = 0  # axes that the ellipsis covers beyond its own entry
    while len(axes) < total:
        i = len(axes)
        if ellipsis >> i & 1:
            stop = max(i + 1, min(i + 1 + total - count, total))
            hidden = stop - i - 1
            axes += [_WHOLE] * (stop - i)
        elif new >> (i - hidden) & 1:
            axes.append(_NEW)
        else:
            axes.append(i - hidden if i - hidden < count else _WHOLE)
    if len(axes) - axes.count(_NEW) != rank:
        raise GraphError(f"new_axis_mask {new} and ellipsis_mask {ellipsis} do not fit {count} entries, {rank} axes")
    return axes


def _picks(axes: list[int], entries: _Entries, source: Tensor) -> tuple[tuple[int, int | None, int] | int | None, ...]:
    sizes = iter(source.shape)
    picks: list[tuple[int, int | None, int] | int | None] = []
    for entry in axes:
        size = 1 if entry == _NEW else next(sizes)
        if entry == _NEW:
            picks.append(None)
        elif entry == _WHOLE:
            picks.append((0, size, 1))
        else:
            picks.append(_pick(entries, entry, size))
    return tuple(picks)


def _pick(entries: _Entries, i: int, size: int) -> tuple[int, int | None, int] | int:
    stride = entries.stride[i]
    low, high = (0, size) if stride > 0 else (-1, size - 1)
    start = _bound(entries.begin[i], size, low, high)
    if entries.begin_mask >> i & 1:
        start = 0 if stride > 0 else size - 1
    if entries.shrink_mask >> i & 1:
        if stride < 0 or not 0 <= start < size:
            raise GraphError(f"entry {i} takes index {entries.begin[i]} with stride {stride} of an axis of {size}")
        return start
    if entries.offset and (entries.end[i] < 0 or start + entries.end[i] > size or stride < 0):
        raise GraphError(f"entry {i}: {entries.end[i]} elements from {start} on leave an axis of {size}")
    end = _bound(entries.end[i] + start * entries.offset, size, low, high)
    if entries.end_mask >> i & 1:
        end = high if stride > 0 else low
    return (start, None if end < 0 else end, stride) if start >= 0 else (0, 0, 1)


def _bound(index: int, size: int, low: int, high: int) -> int:
    return min(max(index + size * (index < 0), low), high)


@dataclass(frozen=True)
class DynamicUpdateSlice:
    """Largest first index of the box along each of the model's own axes."""

    last: tuple[int, ...]


def _lower_dynamic_update_slice(node: Node, operands: Operands) -> DynamicUpdateSlice:
    """Decide the largest start of the box.

    Raises:
        GraphError: a box that does not fit, or another number of indices than axes.
        UnsupportedError: more than 8 axes, or types that differ or TFLite does not move.
    """
    source, box, start = (operands.input(i) for i in range(3))
    require_movable(node, source, operands.output(), (*WHOLE_BYTES, DType.INT4))
    require_same_type(source, box)
    require_type(start, INDEX_TYPES)
    if len(source.shape) > MAXIMUM_RANK:
        raise UnsupportedError(f"the input has {len(source.shape)} axes; TFLite takes up to {MAXIMUM_RANK}")
    fits = len(box.shape) == len(source.shape) and all(b <= n for b, n in zip(box.shape, source.shape, strict=True))
    if not fits or start.shape != (len(source.shape),):
        raise GraphError(f"a box of {box.shape} from indices of shape {start.shape} on does not fit {source.shape}")
    return DynamicUpdateSlice(tuple(n - b for b, n in zip(box.shape, source.shape, strict=True)))


def _run_dynamic_update_slice(params: DynamicUpdateSlice, x: Array, box: Array, start: Array) -> tuple[Array, ...]:
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


KERNELS = {
    "slice": Kernel(_lower_slice, _run_slice,
        "a box of the input, from `begin` on, `size` long; a size of -1 reaches to the end", "TFLite kernels/slice.cc"),
    "strided_slice": Kernel(lower_strided_slice, _run_strided_slice,
        "begin, end and stride along each axis, with masks for what the three do not say",
        "TFLite kernels/strided_slice.cc and internal/reference/strided_slice.h"),
    "dynamic_update_slice": Kernel(_lower_dynamic_update_slice, _run_dynamic_update_slice,
        "input 0 with the box in input 1 laid over it, from the indices in input 2 on",
        "TFLite kernels/dynamic_update_slice.cc"),
}  # fmt: skip
