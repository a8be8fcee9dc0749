"""The graph between units as edges, each with one type or in conflict (docs/rules/gap9/types.md#types)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

from tflq.converters.gap9.types.records import Choice
from tflq.converters.gap9.types.resolve import Resolved, Resolver
from tflq.graph import Range

GRAPH_INPUT, GRAPH_OUTPUT = -1, -2


def bit_of(number: int) -> int:
    """Return an integer with one bit set, for sets of units, graph inputs and GRAPH_OUTPUT."""
    return 1 << (2 * number if number >= 0 else -2 * number - 1)


@dataclass(frozen=True)
class EdgeState:
    """Types at both ends of an edge.

    Attributes:
        written: type that the producer writes; None before it is resolved.
        wanted: type that the consumer reads; None before it is resolved.
        conflicts: 1 if the two disagree, else 0.
        asks_up: True if the producer is requested to change, else the consumer.
    """

    written: Choice | None = None
    wanted: Choice | None = None
    conflicts: int = 0
    asks_up: bool = False


@dataclass(eq=False)
class Edge:
    """Connection from one output of a producer to one input of a consumer.

    Attributes:
        tensor: Index of the tensor.
        producer: Unit, or GRAPH_INPUT.
        consumer: Unit, or GRAPH_OUTPUT.
        position: Position among the consumer's computed inputs.
        state: Current types; changed by `Network.set_state` only.
    """

    tensor: int
    producer: int
    consumer: int
    position: int
    state: EdgeState = field(default_factory=EdgeState)

    @property
    def source(self) -> int:
        """Number of the producer: of a unit its own, of a graph input a number below GRAPH_OUTPUT."""
        return GRAPH_OUTPUT - 1 - self.tensor if self.producer == GRAPH_INPUT else self.producer

    @cached_property
    def ends(self) -> int:
        """Bits of producer and consumer."""
        return bit_of(self.source) | bit_of(self.consumer)

    @property
    def in_conflict(self) -> bool:
        """Whether producer and consumer disagree."""
        return self.state.conflicts > 0

    @property
    def arriving(self) -> Choice:
        """Type that the consumer assumes: the producer's side if the producer is requested to change, else its own."""
        chosen = self.state.wanted if self.state.conflicts and self.state.asks_up else self.state.written
        assert chosen is not None
        return chosen


@dataclass(frozen=True)
class UnitState:
    """Decision of a unit.

    Attributes:
        resolved: Types of the unit; None before it is resolved.
        inner: Types that its members decided last; in NNTool they differ from `resolved` for some fusions.
        conflicts: Number of constants of a filter, weights and bias, that are still in conflict.
        is_asked: True if the current attempt has requested a type from the unit.
    """

    resolved: Resolved | None = None
    inner: Resolved | None = None
    conflicts: int = 0
    is_asked: bool = False


@dataclass(eq=False)
class UnitCell:
    """Current and first decision of a unit.

    Attributes:
        number: Number of the unit.
        resolver: Resolves the unit.
        inputs: Edges of its computed inputs, by position.
        outputs: Edges of each tensor that it writes, in order of the consumers.
        state: Current decision; changed by `Network.set_state` only.
        first: Decision without demands.
    """

    number: int
    resolver: Resolver
    inputs: list[Edge]
    outputs: list[list[Edge]]
    state: UnitState = field(default_factory=UnitState)
    first: Resolved | None = None

    @cached_property
    def ends(self) -> int:
        """Bit of the unit."""
        return bit_of(self.number)

    @property
    def resolved(self) -> Resolved:
        """Types of the resolved unit."""
        assert self.state.resolved is not None
        return self.state.resolved

    @property
    def inner(self) -> Resolved:
        """Types of the members of the resolved unit."""
        assert self.state.inner is not None
        return self.state.inner

    @property
    def readers(self) -> Iterator[Edge]:
        """Edges of all outputs."""
        return (edge for edges in self.outputs for edge in edges)

    def members_followed(self) -> bool:
        """Whether the members have other types than the unit, which did not follow a changed input."""
        inner, outer = self.inner, self.resolved
        pairs = zip((*inner.inputs, *inner.outputs), (*outer.inputs, *outer.outputs), strict=True)
        return not all(a.agrees(b) for a, b in pairs)


Cell = Edge | UnitCell
States = dict[Cell, EdgeState | UnitState]


@dataclass
class Network:
    """Units, graph inputs and outputs, and the edges between them.

    Attributes:
        units: Units in order.
        edges_out: Edges of each computed tensor, in order of the consumers.
        ranges: The file's range of each tensor on an edge.
        input_choice: Returns the type of a graph input without demands.
        output_choice: Returns the type that a graph output demands of the type that arrives.
        conflicts: Number of conflicts, those of constants included.
        journals: Each receives the former state of a changed cell, once.
    """

    units: list[UnitCell]
    edges_out: dict[int, list[Edge]]
    ranges: dict[int, Range]
    input_choice: Callable[[int], Choice]
    output_choice: Callable[[Choice], Choice]
    conflicts: int = 0
    journals: list[States] = field(default_factory=list)

    def edges(self) -> list[Edge]:
        """Return all edges."""
        return [edge for edges in self.edges_out.values() for edge in edges]

    def set_written(self, edge: Edge, choice: Choice) -> None:
        """Set the producer's side of an edge; a new conflict requests the consumer to change."""
        self._set_edge(edge, replace(edge.state, written=choice), asks_up=False)

    def set_wanted(self, edge: Edge, choice: Choice) -> None:
        """Set the consumer's side of an edge; a new conflict requests the producer to change."""
        self._set_edge(edge, replace(edge.state, wanted=choice), asks_up=True)

    def _set_edge(self, edge: Edge, state: EdgeState, asks_up: bool) -> None:
        known = state.written is not None and state.wanted is not None
        new, old = (state.wanted, state.written) if asks_up else (state.written, state.wanted)
        conflict = known and new is not None and old is not None and not new.agrees(old)
        kept = state.asks_up if state.conflicts else asks_up
        self.set_state(edge, replace(state, conflicts=int(conflict), asks_up=kept))

    def set_state(self, cell: Cell, state: EdgeState | UnitState) -> None:
        """Change the state of an edge or unit."""
        for journal in self.journals:
            journal.setdefault(cell, cell.state)
        self.conflicts += state.conflicts - cell.state.conflicts
        cell.state = state

    def set_states(self, states: States) -> None:
        """Change the states of several edges and units."""
        for cell, state in states.items():
            self.set_state(cell, state)
