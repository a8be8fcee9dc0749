"""The two passes that choose every type: forward, then elimination of conflicts (docs/gap9.md, 8.5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tflq.converters.gap9.types.network import GRAPH_INPUT, GRAPH_OUTPUT, Edge, Network
from tflq.converters.gap9.types.records import Choice
from tflq.converters.gap9.types.resolve import Resolved, Resolver
from tflq.errors import UnsupportedError
from tflq.graph import Range

Way = frozenset[int]
"""Units, and graph inputs, between the conflict where an attempt began and where it is."""
CONCATENATIONS = ("concatenation", "pack")
Turn = Edge | int
"""An edge, or the constants of a filter: the filter's unit."""


def resolve_forward(network: Network, inputs: Sequence[int], count_open: Callable[[int], int]) -> list[Turn]:
    """Resolve every unit without demands; return the edges in the order in which they first got a type.

    From the graph inputs depth first, then filter by filter in the order of the file: a filter waits for its constants.
    What shares a constant with a hard sigmoid comes last.

    Args:
        network: nothing in it is resolved yet.
        inputs: tensors of the graph inputs.
        count_open: returns how many constants of a resolved filter are in conflict.
    """
    order: list[Turn] = []
    resolvers = list(enumerate(network.resolvers))
    free = {unit for unit, resolver in resolvers if not (resolver.is_filter or resolver.is_last)}

    def publish(tensor: int, choice: Choice) -> None:
        for edge in network.edges_out.get(tensor, ()):
            order.append(edge)
            edge.set_written(choice)

    def visit(unit: int) -> None:
        edges = network.edges_in[unit]
        if unit not in free or unit in network.resolved or any(e.state.written is None for e in edges):
            return
        arrived = [e.arriving for e in edges]
        resolver = network.resolvers[unit]
        found = resolver.forward(arrived, (None,) * len(network.tensors_out[unit]))
        if found is None:
            raise _untyped(resolver)
        network.resolved[unit] = network.inner[unit] = network.first[unit] = found
        for edge, wanted in zip(edges, found.inputs, strict=True):
            edge.set_wanted(wanted)
        if resolver.is_filter:
            network.open_constants[unit] = count_open(unit)
        for tensor, choice in zip(network.tensors_out[unit], found.outputs, strict=True):
            publish(tensor, choice)
        for tensor in network.tensors_out[unit]:
            follow(tensor)

    def follow(tensor: int) -> None:
        for edge in network.edges_out.get(tensor, ()):
            if edge.consumer == GRAPH_OUTPUT:
                edge.set_wanted(network.output_choice(edge.arriving))
            else:
                visit(edge.consumer)

    for tensor in inputs:
        publish(tensor, network.input_choice(tensor))
    for tensor in inputs:
        follow(tensor)
    for unit, resolver in resolvers:
        if resolver.is_filter:
            free.add(unit)
            order.append(unit)
            visit(unit)
    for unit, resolver in resolvers:
        if resolver.is_last:
            free.add(unit)
            visit(unit)
    return order


def _untyped(resolver: Resolver) -> UnsupportedError:
    names = ", ".join(operator.name for operator in resolver.operators)
    return UnsupportedError(
        f"{resolver.where}: GAP9's tool fuses {names} and cannot type them together: one cannot write what the next "
        "takes; replace one or put another layer between them"
    )


def eliminate(network: Network, order: Sequence[Turn]) -> None:
    """Try each conflict in turn, and keep what lowers their number; repeat until a round keeps nothing.

    A round is over what is in conflict when it begins: conflicts that an attempt makes wait for the next one.
    """
    kept = True
    while kept:
        kept = False
        for place in [p for p in order if not isinstance(p, Edge) or p.in_conflict]:
            before, restore = network.conflicts(), network.snapshot()
            if isinstance(place, Edge):
                if not place.in_conflict:
                    continue
                fits = _Attempt(network, place).succeeds()
            else:
                network.open_constants[place], fits = 0, True
            if fits and network.conflicts() < before:
                kept = True
            else:
                restore()


class _Attempt:
    """Follows one conflict as far as it goes: from whom it asks to all that then are in conflict, depth first.

    On one way no unit comes twice, and none leads back to the other end of the conflict where it began; a unit that
    several ways reach is resolved on each, with what its readers demand by then: a filter that was asked writes its own
    type again. What follows a changed input asks its other producers in turn.
    """

    def __init__(self, network: Network, start: Edge) -> None:
        self.network = network
        self.start = start
        self.before = dict(network.resolved)
        self.asked: set[int] = set()

    def succeeds(self) -> bool:
        """Go from the conflict to whom it asks, and on from there; False where no form fits what meets on the way."""
        try:
            if self.start.state.asks_up:
                self.up(self.start, frozenset({self.start.consumer}))
            else:
                self.down(self.start, frozenset({_producer(self.start)}))
        except UnsupportedError:
            return False
        return True

    def up(self, edge: Edge, way: Way) -> None:
        """Ask the producer for what the consumer wants."""
        unit = _producer(edge)
        if unit in way:
            return
        if edge.producer == GRAPH_INPUT:
            self._graph_input(edge, way | {unit})
            return
        again = unit in self.asked
        self.asked.add(unit)
        self._settle_constants(unit)
        demands = self._demands(unit)
        found = self._resolve(unit, demands)
        if found is not None:
            self._set(unit, found)
        elif again and demands[0] is None:
            self._take_back(unit)
        self._go_down(unit, edge, way | {unit})
        self._go_up(unit, None, way | {unit})

    def down(self, edge: Edge, way: Way) -> None:
        """Let the consumer follow what the producer writes, and its readers.

        A concatenation then takes the largest scale that arrives, whatever its readers want. A fusion does not follow
        where an operand would take another type than comes; its members have followed where that is not the first.
        """
        if edge.consumer == GRAPH_OUTPUT:
            assert edge.state.written is not None
            edge.set_wanted(self.network.output_choice(edge.state.written))
            return
        unit = edge.consumer
        if unit in way:
            return
        way |= {unit}
        resolver = self.network.resolvers[unit]
        if resolver.is_filter and resolver.is_fusion:
            self._keep(unit, way)
            return
        network, joins = self.network, resolver.operators[0].name in CONCATENATIONS
        demands = (None,) * len(network.tensors_out[unit]) if joins else self._demands(unit)
        found = resolver.forward(self._arrived(unit), demands)
        if found is None:
            return
        agreeing = [wanted.agrees(came) for wanted, came in zip(found.inputs, self._arrived(unit), strict=True)]
        if not resolver.is_fusion or all(agreeing):
            self._set(unit, found)
        elif agreeing[0]:
            network.inner[unit] = found
        self._go_up(unit, edge, way)
        self._go_down(unit, None, way)

    def _keep(self, unit: int, way: Way) -> None:
        """A fusion that begins with a filter keeps its types where its input changes; its filter may follow, inside.

        What it was asked for before in this attempt it takes back, and all that it was asked for where its filter does
        not take what is written. Its readers follow once more.
        """
        network = self.network
        self._settle_constants(unit)
        if unit in self.asked:
            self._take_back(unit)
        elif not network.resolvers[unit].keeps(network.inner[unit], self._written(unit)):
            self._set_back(unit)
        self._go_down(unit, None, way)
        found = network.resolvers[unit].inside(network.resolved[unit], self._arrived(unit))
        if found is not None and not found.inputs[0].agrees(network.inner[unit].inputs[0]):
            network.inner[unit] = found

    def _take_back(self, unit: int) -> None:
        """Let a fusion write again what it wrote before the attempt; its members keep what they were asked for."""
        self.network.resolved[unit] = self.before[unit]
        self._publish(unit)

    def _set_back(self, unit: int) -> None:
        """Let a fusion and its members write what they wrote before anybody asked."""
        first = self.network.first[unit]
        if not first.outputs[0].agrees(self.network.resolved[unit].outputs[0]):
            self.network.resolved[unit] = self.network.inner[unit] = first
            self._publish(unit)

    def _demands(self, unit: int) -> list[Choice | None]:
        tensors = self.network.tensors_out[unit]
        return [_demand(self.network.edges_out.get(t, ()), self.network.ranges[t]) for t in tensors]

    def _arrived(self, unit: int) -> list[Choice]:
        return [e.arriving for e in self.network.edges_in[unit]]

    def _written(self, unit: int) -> list[Choice]:
        edges = self.network.edges_in[unit]
        return [e.state.written for e in edges if e.state.written is not None]

    def _resolve(self, unit: int, demands: Sequence[Choice | None]) -> Resolved | None:
        resolver = self.network.resolvers[unit]
        if not resolver.is_fusion:
            return resolver.forward(self._arrived(unit), demands)
        if demands[0] is None:
            return None
        return resolver.backward(self.network.resolved[unit], self._arrived(unit), demands[0])

    def _settle_constants(self, unit: int) -> None:
        """Weights and bias of a filter give way, whether it can follow or not."""
        if unit in self.network.open_constants:
            self.network.open_constants[unit] = 0

    def _set(self, unit: int, found: Resolved) -> None:
        """Put a unit's new types onto all its edges."""
        network = self.network
        network.resolved[unit] = network.inner[unit] = found
        self._settle_constants(unit)
        self._publish(unit)
        for edge, wanted in zip(network.edges_in[unit], found.inputs, strict=True):
            edge.set_wanted(wanted)

    def _publish(self, unit: int) -> None:
        network = self.network
        for tensor, choice in zip(network.tensors_out[unit], network.resolved[unit].outputs, strict=True):
            for edge in network.edges_out.get(tensor, ()):
                edge.set_written(choice)

    def _go_down(self, unit: int, but: Edge | None, way: Way) -> None:
        for tensor in self.network.tensors_out[unit]:
            for edge in self.network.edges_out.get(tensor, ()):
                if edge is not but and edge.in_conflict:
                    self.down(edge, way)

    def _go_up(self, unit: int, but: Edge | None, way: Way) -> None:
        for edge in self.network.edges_in[unit]:
            if edge is not but and edge.in_conflict:
                self.up(edge, way)

    def _graph_input(self, edge: Edge, way: Way) -> None:
        edges = self.network.edges_out[edge.tensor]
        choice = _demand(edges, self.network.ranges[edge.tensor])
        if choice is None:
            return
        for other in edges:
            other.set_written(choice)
        for other in edges:
            if other is not edge and other.in_conflict:
                self.down(other, way)


def _producer(edge: Edge) -> int:
    """The producer's number on a way: of a graph input one below those of units."""
    return GRAPH_OUTPUT - 1 - edge.tensor if edge.producer == GRAPH_INPUT else edge.producer


def _demand(edges: Sequence[Edge], range_: Range) -> Choice | None:
    """Return what the readers of one output want together.

    Nobody is in conflict: nothing. One demand, and one type as it is: the demand. Else of all demands and present
    types those of most bits, and of these the one whose ends are nearest to the file's range.
    """
    demands = _distinct([e.state.wanted for e in edges if e.in_conflict and e.state.asks_up])
    present = _distinct([e.state.written for e in edges])
    if not demands:
        return None
    if len(demands) == 1 and len(present) == 1:
        return demands[0]
    every = [*present, *demands]
    most = max(c.affine.bits for c in every)
    return min((c for c in every if c.affine.bits == most), key=lambda c: c.distance(range_))


def _distinct(choices: Sequence[Choice | None]) -> list[Choice]:
    found: list[Choice] = []
    for choice in choices:
        if choice is not None and not any(choice.agrees(other) for other in found):
            found.append(choice)
    return found
