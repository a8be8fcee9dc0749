"""The graph between units as edges, each with one type or in conflict (docs/gap9.md, 8.1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from tflq.converters.gap9.types.records import Choice
from tflq.converters.gap9.types.resolve import Resolved, Resolver
from tflq.graph import Range

Place = tuple[int, int]
"""(unit, input position among its computed inputs)."""
GRAPH_INPUT, GRAPH_OUTPUT = -1, -2


@dataclass(frozen=True)
class EdgeState:
    """What an edge holds.

    Attributes:
        written: what the producer writes, None before it is resolved.
        wanted: what the consumer takes, None before it is resolved.
        conflict: whether the two disagree.
        asks_up: whether the producer is asked to give way, else the consumer.
    """

    written: Choice | None = None
    wanted: Choice | None = None
    conflict: bool = False
    asks_up: bool = False


@dataclass
class Edge:
    """From one output of a producer to one input of a consumer.

    Attributes:
        tensor: what flows.
        producer: a unit, or GRAPH_INPUT.
        consumer: a unit, or GRAPH_OUTPUT.
        position: of the consumer's computed inputs.
    """

    tensor: int
    producer: int
    consumer: int
    position: int
    state: EdgeState = field(default_factory=EdgeState)

    @property
    def in_conflict(self) -> bool:
        """Whether producer and consumer disagree."""
        return self.state.conflict

    def set_written(self, choice: Choice) -> None:
        """Set the producer's side."""
        other = self.state.wanted
        self._set(replace(self.state, written=choice), other is not None and not choice.agrees(other), False)

    def set_wanted(self, choice: Choice) -> None:
        """Set the consumer's side."""
        other = self.state.written
        self._set(replace(self.state, wanted=choice), other is not None and not choice.agrees(other), True)

    def _set(self, state: EdgeState, conflict: bool, asks_up: bool) -> None:
        """A new conflict asks the side that was not set last; an old one keeps whom it asks."""
        kept = self.state.asks_up if self.state.conflict else asks_up
        self.state = replace(state, conflict=conflict, asks_up=kept)

    @property
    def arriving(self) -> Choice:
        """What the consumer reckons with: the producer's side if it is asked to give way, else its own."""
        chosen = self.state.wanted if self.state.conflict and self.state.asks_up else self.state.written
        assert chosen is not None
        return chosen


@dataclass
class Network:
    """Units, graph inputs and outputs, and the edges between them.

    Attributes:
        resolvers: of the units.
        edges_in: of each unit, by position.
        edges_out: of each tensor, in order of the consumers.
        tensors_out: the tensors that each unit writes.
        resolved: what each unit decided so far.
        inner: what the members of each unit decided last, in NNTool another thing for some fusions.
        first: what each unit decided before anybody asked.
        open_constants: of each filter, how many of weights and bias have not given way yet.
        ranges: the file's range of each tensor on an edge.
        input_choice: the type of a graph input that nobody demands another of.
        output_choice: the type that a graph output demands of what arrives.
    """

    resolvers: list[Resolver]
    edges_in: list[list[Edge]]
    edges_out: dict[int, list[Edge]]
    tensors_out: list[tuple[int, ...]]
    resolved: dict[int, Resolved]
    inner: dict[int, Resolved]
    open_constants: dict[int, int]
    ranges: dict[int, Range]
    input_choice: Callable[[int], Choice]
    output_choice: Callable[[Choice], Choice]
    first: dict[int, Resolved] = field(default_factory=dict)

    def edges(self) -> list[Edge]:
        """Return all edges."""
        return [edge for edges in self.edges_out.values() for edge in edges]

    def conflicts(self) -> int:
        """Return how many edges are in conflict, those of constants included."""
        return sum(e.in_conflict for e in self.edges()) + sum(self.open_constants.values())

    def members_followed(self, unit: int) -> bool:
        """Whether the members of a unit have other types than the unit, which did not follow a changed input."""
        inner, outer = self.inner[unit], self.resolved[unit]
        pairs = zip((*inner.inputs, *inner.outputs), (*outer.inputs, *outer.outputs), strict=True)
        return not all(a.agrees(b) for a, b in pairs)

    def snapshot(self) -> Callable[[], None]:
        """Return a function that brings the present state back."""
        states = [(edge, edge.state) for edge in self.edges()]
        resolved, inner, constants = dict(self.resolved), dict(self.inner), dict(self.open_constants)

        def restore() -> None:
            for edge, state in states:
                edge.state = state
            self.resolved, self.inner, self.open_constants = resolved, inner, constants

        return restore
