"""A model: its graphs, their signatures, and what else a file carries; what `extra` of a tensor or graph may tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, runtime_checkable

from tflq.graph.graph import Graph, Tensor


@runtime_checkable
class StoredSparsely(Protocol):
    """What `Tensor.extra` of a file format that has sparse constants offers."""

    def sparse_block(self, tensor: Tensor) -> tuple[int, ...] | None:
        """Return what `sparse_block` does."""


def sparse_block(tensor: Tensor) -> tuple[int, ...] | None:
    """Return the block in which a constant is stored: None where it is dense, () for another order than row by row.

    Kernels depend on it: TFLite rounds otherwise where weights are sparse.
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


@dataclass(frozen=True)
class Signature:
    """A named way into a graph.

    Attributes:
        key: the name, such as "serving_default".
        graph: index of the graph.
        inputs: argument name -> tensor index.
        outputs: result name -> tensor index.
    """

    key: str
    graph: int
    inputs: dict[str, int]
    outputs: dict[str, int]


_REPR_LINES = 20


@dataclass
class Model:
    """Graphs (the first is the main one) with signatures, metadata and the words that name the source in messages.

    Attributes:
        graphs: the main graph first; others are bodies of control flow or further signatures.
        signatures: named ways into the graphs.
        metadata: name -> bytes.
        description: free text of the file.
        version: the schema version that the file states.
        source: the file's name, for messages.
        extra: what only the file format knows.
    """

    graphs: list[Graph]
    signatures: list[Signature] = field(default_factory=list)
    metadata: dict[str, bytes] = field(default_factory=dict)
    description: str | None = None
    version: int = 3
    source: str = field(default="", compare=False)
    extra: object | None = None

    def __repr__(self) -> str:
        """Return at most 20 lines: each graph with its first operators, outputs with type and shape."""
        lines = [f"Model {self.source!r}: {len(self.graphs)} graphs, {len(self.signatures)} signatures"]
        for number, graph in enumerate(self.graphs):
            lines.append(f"  graph {number} {graph.name!r}: {len(graph.nodes)} operators, {len(graph.tensors)} tensors")
            for index, node in enumerate(graph.nodes):
                outputs = [graph.tensors[t] for t in node.outputs]
                types = ", ".join(f"{tensor.dtype.value}{list(tensor.shape)}" for tensor in outputs)
                lines.append(f"    {index} {node.operator} {node.name!r} -> {types}")
        return "\n".join(lines if len(lines) <= _REPR_LINES else [*lines[: _REPR_LINES - 1], "    ..."])

    @property
    def main(self) -> Graph:
        """The graph that runs when no signature is named."""
        return self.graphs[0]


def with_graphs(model: Model, graphs: Sequence[Graph]) -> Model:
    """Return the model with rewritten graphs; signatures follow the inputs and outputs by their position.

    Args:
        model: the source.
        graphs: the first graphs of the model, rewritten, with as many inputs and outputs as before; signatures of
            graphs that are not among them go.
    """
    signatures = [
        replace(s, inputs=_moved(s.inputs, old.inputs, new.inputs), outputs=_moved(s.outputs, old.outputs, new.outputs))
        for s in model.signatures
        if s.graph < len(graphs)
        for old, new in ((model.graphs[s.graph], graphs[s.graph]),)
    ]
    return replace(model, graphs=list(graphs), signatures=signatures)


def _moved(names: dict[str, int], old: tuple[int, ...], new: tuple[int, ...]) -> dict[str, int]:
    number = dict(zip(old, new, strict=True))
    return {name: number[t] for name, t in names.items() if t in number}
