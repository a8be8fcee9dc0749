"""The graph under conversion, with the settings of its layers."""

from __future__ import annotations

from collections.abc import Mapping

from tflq.converters.gap9.operators import layer_of
from tflq.converters.gap9.options import LayerOptions
from tflq.graph import Graph, Node
from tflq.graph.rewriting import GraphEditor


class Gap9Editor(GraphEditor):
    """A graph under conversion.

    Attributes:
        options: Settings of each layer, by name.
        positive: Graph inputs with a range above 0 before ranges are widened to include it; they are symmetric.
    """

    def __init__(
        self, graph: Graph, options: Mapping[str, LayerOptions], positive: frozenset[int] = frozenset()
    ) -> None:
        super().__init__(graph)
        self.options, self.positive = options, positive

    def option(self, node: Node) -> LayerOptions:
        """Return the settings of the layer that a node belongs to."""
        return self.options[layer_of(node)]

    def is_vendor(self, node: Node) -> bool:
        """Whether a node keeps the flaws of NNTool (numerics=nntool)."""
        return self.option(node).numerics == "nntool"

    def where(self, node: Node) -> str:
        """Name a node for a message: its number, operator and name."""
        names = [other.name for other in self.nodes]
        return f"operator {names.index(node.name)} ({node.operator} '{node.name}')"
