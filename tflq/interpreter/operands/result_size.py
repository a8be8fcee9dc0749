"""How large a result may become: asked by kernels when they have decided its shape, before they make it."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tflq import limits
from tflq.graph import DType


def size_in_bytes(shape: Sequence[int], dtype: DType) -> int:
    """Return the bytes that a tensor takes in memory; a string counts as the reference to it."""
    return prod(shape) * max(1, dtype.storage.itemsize)


def require_result(shape: Sequence[int], dtype: DType, what: str = "a result") -> None:
    """Check the size of a result, or of what a kernel needs on the way to it.

    Args:
        shape: of the model's own axes.
        dtype: of its elements.
        what: names it in messages.

    Raises:
        LimitError: it is larger than `max_bytes`, or than what `max_memory` leaves beside all that is alive.
    """
    limits.require_room(size_in_bytes(shape, dtype), f"{what} of shape {tuple(shape)}")
