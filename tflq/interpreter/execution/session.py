"""What lives from one node, graph or invocation to the next: variables, resources, and which graphs ran once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tflq.interpreter.execution.values import Value


@dataclass
class Session:
    """State of a run.

    Attributes:
        variables: (graph, tensor) -> value of a variable tensor; absent until it is first written.
        resources: name of a resource -> its value: a variable's value, or a hash table (a dict).
        called: graphs that CALL_ONCE has run.
        subgraph_runs: how often this invocation has run subgraphs so far.
        generators: (graph, node) -> what a random generator returned as its state.
    """

    variables: dict[tuple[int, int], Value] = field(default_factory=dict)
    resources: dict[str, object] = field(default_factory=dict)
    called: set[int] = field(default_factory=set)
    subgraph_runs: int = 0
    generators: dict[tuple[int, int], Value] = field(default_factory=dict)


class Context(Protocol):
    """What a control operator sees of the program that runs it."""

    @property
    def session(self) -> Session:
        """The state of the run."""

    def run_graph(self, graph: int, inputs: Sequence[Value], samples: int) -> list[Value]:
        """Run another graph of the model and return its outputs."""
