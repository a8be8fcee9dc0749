"""A model: its graphs, their signatures, and what else a file carries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tflq.graph.graph import Graph


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
