"""STRIDED_SLICE: begin, end and stride along each axis, with masks for what the three do not say.

The five masks have one bit for each entry of begin, end and stride (not for each axis of the input): begin and end
replace a bound by the edge, ellipsis stands for the axes that the entries do not name, new_axis adds an axis of length
1, shrink_axis takes one index and drops the axis. With the option `offset`, the end counts from the begin.

Source: TFLite kernels/strided_slice.cc and internal/reference/strided_slice.h. Its quirk: an ellipsis always covers one
axis at least.
"""

from __future__ import annotations

from dataclasses import dataclass

from tflq.errors import GraphError
from tflq.graph import Array, DType, Node, Operands, Tensor
from tflq.interpreter.operands.movable import FIXED_SIZE, constant_vector, require_movable

MAXIMUM_ENTRIES = 31
"""TFLite's masks have room for no more."""
_WHOLE, _NEW = -1, -2


@dataclass(frozen=True)
class StridedSlice:
    """What to take, one entry for each axis behind the sample axis that indexing sees.

    Attributes:
        picks: (start, stop, stride) with stop None for the edge; an index; or None for a new axis.
    """

    picks: tuple[tuple[int, int | None, int] | int | None, ...]


@dataclass(frozen=True)
class _Entries:
    """What the file says: the three vectors and the masks."""

    begin: tuple[int, ...]
    end: tuple[int, ...]
    stride: tuple[int, ...]
    begin_mask: int
    end_mask: int
    shrink_mask: int
    offset: bool


def lower(node: Node, operands: Operands) -> StridedSlice:
    """Decide what to take.

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
    return StridedSlice(_picks(_expanded(node, len(source.shape), len(begin)), entries, source))


def run(params: StridedSlice, x: Array, *_entries: Array) -> tuple[Array, ...]:
    """Run STRIDED_SLICE: T[S, *shape] -> T[S, *taken], a view of the input."""
    picks = (slice(*pick) if isinstance(pick, tuple) else pick for pick in params.picks)
    where = (slice(None), *picks)
    return (x[where],)


def _expanded(node: Node, rank: int, count: int) -> list[int]:
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
