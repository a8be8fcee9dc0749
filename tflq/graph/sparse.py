"""How a constant lies in its file, where a kernel depends on it: TFLite rounds otherwise where weights are sparse."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from tflq.graph.graph import Tensor


@runtime_checkable
class StoredSparsely(Protocol):
    """What `Tensor.extra` of a file format that has sparse constants offers."""

    def sparse_block(self, tensor: Tensor) -> tuple[int, ...] | None:
        """Return what `sparse_block` does."""


def sparse_block(tensor: Tensor) -> tuple[int, ...] | None:
    """Return the block in which a constant is stored: None where it is dense, () for another order than row by row.

    A block holds as many elements along each axis as it says; where it has a non-zero one, the file has all of them.
    """
    return tensor.extra.sparse_block(tensor) if isinstance(tensor.extra, StoredSparsely) else None
