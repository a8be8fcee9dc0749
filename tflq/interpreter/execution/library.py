"""The programs of one model's graphs."""

from __future__ import annotations

from collections.abc import Sequence

from tflq import limits
from tflq.errors import GraphError
from tflq.graph import Graph
from tflq.interpreter.compiled.compiler import Library as Kernels
from tflq.interpreter.execution.control import called_graphs
from tflq.interpreter.execution.program import Program
from tflq.interpreter.operands.computations import name_computations


class Library:
    """The programs of a model's graphs, made when they are first needed."""

    def __init__(self, graphs: Sequence[Graph], arithmetic: str, kernels: Kernels | None = None) -> None:
        """Start without programs; `kernels` are compiled ones, None for numpy alone."""
        self.graphs = name_computations(graphs)
        self.kernels = kernels
        self.arithmetic = arithmetic
        self.called = frozenset(g for graph in graphs for node in graph.nodes for g in called_graphs(node))
        self._programs: dict[int, Program] = {}

    def program(self, number: int) -> Program:
        """Return the program of a graph.

        Raises:
            GraphError: there is no such graph.
            UnsupportedError: an operator without a kernel.
        """
        if not 0 <= number < len(self.graphs):
            raise GraphError(f"subgraph {number} is out of range, the model has 0..{len(self.graphs) - 1}")
        if number not in self._programs:
            self._programs[number] = Program(self, number)
        return self._programs[number]

    def reachable(self, number: int) -> set[int]:
        """Return the graphs that graph `number` may run, itself included.

        Raises:
            GraphError: as `program`, or a graph runs itself, by way of others or not.
            UnsupportedError: as `program`, or graphs run each other more levels deep than `max_depth`.
        """
        levels: dict[int, int] = {}
        self._visit(number, (), levels)
        return set(levels)

    def _visit(self, number: int, path: tuple[int, ...], levels: dict[int, int]) -> int:
        """Find how many levels of graphs lie below and including a graph that is run by way of `path`."""
        if number in path:
            names = " -> ".join(map(str, (*path, number)))
            raise GraphError(f"subgraphs run each other in a circle: {names}; such a model never ends")
        allowed, what = limits.current(), f"levels of subgraphs that run each other, down to subgraph {number}"
        allowed.require("max_depth", len(path) + 1, what)
        if number not in levels:
            below = {called for node in self.program(number).graph.nodes for called in called_graphs(node)}
            levels[number] = 1 + max((self._visit(n, (*path, number), levels) for n in sorted(below)), default=0)
        allowed.require("max_depth", len(path) + levels[number], what)
        return levels[number]
