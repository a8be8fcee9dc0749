"""What a target's graph may say of itself: which tensor of its model a tensor stands for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from tflq.graph.graph import Graph


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
