"""What the `extra` of a tensor or graph may tell beside the format's own data.

How a constant lies in its file, where a kernel depends on it (TFLite rounds otherwise where weights are sparse), and
which tensor of its model a tensor of a target's graph stands for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from tflq.graph.graph import Graph, Tensor


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


@runtime_checkable
class Sources(Protocol):
    """An object in `Graph.extra` that knows the model behind a graph whose tensors have other names."""

    @property
    def sources(self) -> Mapping[str, int]:
        """Name of a tensor of the graph -> index of the tensor of the model that it stands for."""


def source_tensors(graph: Graph) -> dict[int, int]:
    """Return tensor of the graph -> tensor of the model; empty where the graph does not say."""
    if not isinstance(graph.extra, Sources):
        return {}
    known = graph.extra.sources
    return {t: known[tensor.name] for t, tensor in enumerate(graph.tensors) if tensor.name in known}
