"""Passes from graph to graph that targets share; a target's own stand in its package (docs/architecture.md).

A target's way is a list of small passes, each with the line why the vendor's tool does it:

    result = run_passes(graph, (Pass(remove_conversions, "types are chosen anew"), Pass(fold_pad, "...")))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tflq.graph import Graph


@dataclass(frozen=True)
class Pass:
    """One rewrite of a graph.

    Attributes:
        run: returns another graph; the one given stays.
        why: what it is for, in a line.
    """

    run: Callable[[Graph], Graph]
    why: str


def run_passes(graph: Graph, passes: Iterable[Pass]) -> Graph:
    """Return the graph after all passes, in their order."""
    for step in passes:
        graph = step.run(graph)
    return graph
