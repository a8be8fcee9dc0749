"""Channels last, as TFLite has tensors of four axes, and channels first, as most other formats have them."""

from __future__ import annotations

from collections.abc import Sequence

TO_FIRST = (0, 3, 1, 2)
"""Order of the axes [N, H, W, C] in [N, C, H, W]."""
TO_LAST = (0, 2, 3, 1)


def shape_first(shape: Sequence[int]) -> tuple[int, ...]:
    """Return a shape with channels first; of other ranks than 4 as it is."""
    return tuple(shape[axis] for axis in TO_FIRST) if len(shape) == 4 else tuple(shape)


def axis_first(axis: int, rank: int) -> int:
    """Return where an axis stands with channels first; negative ones count from the back."""
    return TO_FIRST.index(axis % rank) if rank == 4 else axis % rank


def order_first(order: Sequence[int]) -> tuple[int, ...]:
    """Return the axes of a transposition with channels first on both sides."""
    return tuple(TO_FIRST.index(order[a]) for a in TO_FIRST) if len(order) == 4 else tuple(order)
