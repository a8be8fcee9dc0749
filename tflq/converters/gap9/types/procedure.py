"""The two passes that choose every type: forward, then elimination of conflicts (docs/rules/gap9/types.md#types)."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from tflq.converters.gap9.types.network import (
    GRAPH_INPUT,
    GRAPH_OUTPUT,
    Edge,
    Network,
    States,
    UnitCell,
    UnitState,
    bit_of,
)
from tflq.converters.gap9.types.records import Choice
from tflq.converters.gap9.types.resolve import Resolved, Resolver
from tflq.errors import UnsupportedError
from tflq.graph import Range
from tflq.graph.operators import Trait, with_traits

Turn = Edge | UnitCell
"""An edge, or the constants of a filter: the filter's unit."""
Walks = dict[tuple[Edge, bool], "_Walk"]
"""Edge and direction -> the last walk that began there."""
Steps = Generator["Steps", None, None]
"""A function that yields the calls on which its own recursion would be as deep as the network."""
_JOINS = with_traits(Trait.JOIN)
_REMEMBERED_DEPTH, _REMEMBERED_WALKS = 5, 64


def resolve_forward(network: Network, inputs: Sequence[int], count_open: Callable[[int, Resolved], int]) -> list[Turn]:
    """Resolve every unit without demands; return the edges in the order in which they first got a type.

    From the graph inputs depth first, then filter by filter in the order of the file: a filter waits for its constants.
    A unit that shares a constant with a hard sigmoid comes last.

    Args:
        network: Network without types.
        inputs: Tensors of the graph inputs.
        count_open: Returns how many constants of a resolved filter are in conflict.
    """
    order: list[Turn] = []
    waiting = {cell.number for cell in network.units if cell.resolver.is_filter or cell.resolver.is_last}

    def publish(edges: Iterable[Edge], choice: Choice) -> None:
        for edge in edges:
            order.append(edge)
            network.set_written(edge, choice)

    def visit(cell: UnitCell) -> Steps:
        if cell.number in waiting or cell.first or any(e.state.written is None for e in cell.inputs):
            return
        resolver = cell.resolver
        resolved = resolver.forward([e.arriving for e in cell.inputs], (None,) * len(cell.outputs))
        if resolved is None:
            raise _untyped(resolver)
        cell.first = resolved
        count = count_open(cell.number, resolved) if resolver.is_filter else 0
        network.set_state(cell, UnitState(resolved, resolved, count))
        for edge, wanted in zip(cell.inputs, resolved.inputs, strict=True):
            network.set_wanted(edge, wanted)
        for edges, choice in zip(cell.outputs, resolved.outputs, strict=True):
            publish(edges, choice)
        for edges in cell.outputs:
            yield follow(edges)

    def follow(edges: Iterable[Edge]) -> Steps:
        for edge in edges:
            if edge.consumer == GRAPH_OUTPUT:
                network.set_wanted(edge, network.output_choice(edge.arriving))
            else:
                yield visit(network.units[edge.consumer])

    for tensor in inputs:
        publish(network.edges_out[tensor], network.input_choice(tensor))
    for tensor in inputs:
        _run(follow(network.edges_out[tensor]))
    for cell in network.units:
        if cell.resolver.is_filter:
            waiting.discard(cell.number)
            order.append(cell)
            _run(visit(cell))
    for cell in network.units:
        if cell.resolver.is_last:
            waiting.discard(cell.number)
            _run(visit(cell))
    return order


def _run(steps: Steps) -> None:
    """Run a function of `Steps` with all calls that it yields."""
    stack: list[Steps] = [steps]
    error: UnsupportedError | None = None
    while stack:
        try:
            called = next(stack[-1]) if error is None else stack[-1].throw(error)
        except StopIteration:
            error = None
            stack.pop()
        except UnsupportedError as raised:
            error = raised
            stack.pop()
        else:
            error = None
            stack.append(called)
    if error is not None:
        raise error


def _untyped(resolver: Resolver) -> UnsupportedError:
    names = ", ".join(operator.name for operator in resolver.operators)
    return UnsupportedError(
        f"{resolver.where()}: GAP9's tool fuses {names} and cannot type them together: one cannot write what the next "
        "takes; replace one or put another layer between them"
    )


def eliminate(network: Network, order: Sequence[Turn]) -> None:
    """Try each conflict in turn, and keep an attempt that lowers their number; repeat until a round keeps none.

    A round is over the conflicts at its start: conflicts that an attempt makes wait for the next one.
    """
    kept, walks = True, Walks()
    while kept:
        kept = False
        for place in [p for p in order if isinstance(p, UnitCell) or p.in_conflict]:
            before, journal = network.conflicts, States()
            network.journals = [journal]
            if isinstance(place, UnitCell):
                network.set_state(place, replace(place.state, conflicts=0))
            fits = isinstance(place, UnitCell) or (place.in_conflict and _Attempt(network, walks).succeeds(place))
            network.journals = []
            if fits and network.conflicts < before:
                kept = True
                _commit(network, journal, walks)
            else:
                network.set_states(journal)


def _commit(network: Network, journal: States, walks: Walks) -> None:
    """Keep an attempt; forget the walks that read a changed state."""
    changed = 0
    for cell in journal:
        changed |= cell.ends
        if isinstance(cell, UnitCell):
            network.set_state(cell, replace(cell.state, is_asked=False))
    for key in [key for key, walk in walks.items() if walk.visited & changed]:
        del walks[key]


@dataclass(frozen=True)
class _Walk:
    """A part of an attempt, from one edge on; repeated without computation if it would read the same states.

    Attributes:
        visited: Bits of the units and graph inputs whose edges it read.
        tested: Bits of those that it came to.
        way: Those of them that were on the way.
        starts: State at its start of each visited edge and unit that the attempt had changed before.
        changes: State at its end of each edge and unit that it changed.
        fails: True if no form fits.
    """

    visited: int
    tested: int
    way: int
    starts: States
    changes: States
    fails: bool


class _Attempt:
    """Follows one conflict: from the side that it asks to all conflicts that result, depth first.

    On one way no unit comes twice, and none leads back to the other end of the conflict where it began; a unit that
    several ways reach is resolved on each, with the demands of its readers by then: a filter that was asked writes its
    own type again. A unit that follows a changed input asks its other producers in turn.

    A way is a set of bits: units, and graph inputs, between the conflict where the attempt began and the current one.
    Attempts in a row mostly end in the same long walk, so the last walks are remembered.
    """

    def __init__(self, network: Network, walks: Walks) -> None:
        self.network, self.walks = network, walks
        self.origins = network.journals[0]
        self.visited = self.tested = 0

    def succeeds(self, start: Edge) -> bool:
        """Follow the conflict; return False if no form fits the types on the way."""
        up = start.state.asks_up
        try:
            _run(self._follow(start, up, bit_of(start.consumer if up else start.source)))
        except UnsupportedError:
            return False
        return True

    def _follow(self, edge: Edge, up: bool, way: int) -> Steps:
        """Ask the producer of an edge for the type that the consumer wants, or let the consumer follow the producer."""
        bit = bit_of(edge.source if up else edge.consumer)
        self.tested |= bit
        if bit & way and (up or edge.consumer != GRAPH_OUTPUT):
            return
        self.visited |= bit
        if way.bit_count() > _REMEMBERED_DEPTH:
            yield from self._step(edge, up, way | bit)
            return
        walk = self.walks.get((edge, up))
        if walk is not None and self._repeats(walk, way):
            self.network.set_states(walk.changes)
        else:
            walk = yield from self._record(edge, up, way)
        self.visited |= walk.visited
        self.tested |= walk.tested
        if walk.fails:
            raise UnsupportedError("no type fits on the way")

    def _repeats(self, walk: _Walk, way: int) -> bool:
        """Whether a walk would read the same states now as before."""
        if way & walk.tested != walk.way:
            return False
        changed = {cell: old for cell, old in self.origins.items() if cell.ends & walk.visited}
        return all(cell.state == state for cell, state in {**changed, **walk.starts}.items())

    def _record(self, edge: Edge, up: bool, way: int) -> Generator[Steps, None, _Walk]:
        """Take a step and all that follow, and remember them."""
        outer, bit = (self.visited, self.tested), bit_of(edge.source if up else edge.consumer)
        self.visited = self.tested = bit
        known, journal, fails = len(self.origins), States(), False
        self.network.journals.append(journal)
        try:
            yield from self._step(edge, up, way | bit)
        except UnsupportedError:
            fails = True
        self.network.journals.pop()
        before = [cell for cell in islice(self.origins, known) if cell.ends & self.visited]
        starts = {cell: journal.get(cell, cell.state) for cell in before}
        changes = {cell: cell.state for cell in journal}
        walk = _Walk(self.visited, self.tested, way & self.tested, starts, changes, fails)
        self.visited, self.tested = outer
        self.walks.pop((edge, up), None)
        self.walks[edge, up] = walk
        if len(self.walks) > _REMEMBERED_WALKS:
            del self.walks[next(iter(self.walks))]
        return walk

    def _step(self, edge: Edge, up: bool, way: int) -> Steps:
        units = self.network.units
        if up:
            if edge.producer == GRAPH_INPUT:
                yield from self._change_input(edge, way)
            else:
                yield from self._ask(units[edge.producer], edge, way)
        elif edge.consumer == GRAPH_OUTPUT:
            assert edge.state.written is not None
            self.network.set_wanted(edge, self.network.output_choice(edge.state.written))
        elif units[edge.consumer].resolver.is_filter and units[edge.consumer].resolver.is_fusion:
            yield from self._keep(units[edge.consumer], way)
        else:
            yield from self._adapt(units[edge.consumer], edge, way)

    def _ask(self, cell: UnitCell, edge: Edge, way: int) -> Steps:
        """Ask a producer for the type that a consumer wants."""
        again = cell.state.is_asked
        self.network.set_state(cell, replace(cell.state, is_asked=True, conflicts=0))
        demands = self._demands(cell)
        resolved = self._resolve(cell, demands)
        if resolved is not None:
            self._set(cell, resolved)
        elif again and demands[0] is None:
            self._undo_demands(cell)
        yield from self._go_down(cell, edge, way)
        yield from self._go_up(cell, None, way)

    def _adapt(self, cell: UnitCell, edge: Edge, way: int) -> Steps:
        """Let a consumer follow the type that a producer writes, and its readers.

        A concatenation then takes the largest scale that arrives, regardless of its readers. A fusion does not follow
        if an operand would take another type than arrives; its members have followed if that is not the first operand.
        """
        resolver, arrived = cell.resolver, [e.arriving for e in cell.inputs]
        joins = resolver.operators[0].name in _JOINS
        resolved = resolver.forward(arrived, (None,) * len(cell.outputs) if joins else self._demands(cell))
        if resolved is None:
            return
        agreeing = [wanted.agrees(came) for wanted, came in zip(resolved.inputs, arrived, strict=True)]
        if not resolver.is_fusion or all(agreeing):
            self._set(cell, resolved)
        elif agreeing[0]:
            self.network.set_state(cell, replace(cell.state, inner=resolved))
        yield from self._go_up(cell, edge, way)
        yield from self._go_down(cell, None, way)

    def _keep(self, cell: UnitCell, way: int) -> Steps:
        """Keep the types of a fusion that begins with a filter when its input changes; its filter may follow, inside.

        Undo the demands made on this fusion in the current attempt. If its filter cannot read the new input type, undo
        all demands. Its readers follow once more.
        """
        self.network.set_state(cell, replace(cell.state, conflicts=0))
        written = [e.state.written for e in cell.inputs if e.state.written is not None]
        if cell.state.is_asked:
            self._undo_demands(cell)
        elif not cell.resolver.keeps(cell.inner, written):
            self._restore_first(cell)
        yield from self._go_down(cell, None, way)
        inner = cell.resolver.inside(cell.resolved, [e.arriving for e in cell.inputs])
        if inner is not None and not inner.inputs[0].agrees(cell.inner.inputs[0]):
            self.network.set_state(cell, replace(cell.state, inner=inner))

    def _undo_demands(self, cell: UnitCell) -> None:
        """Let a fusion write the type from before the attempt; its members keep the demanded types."""
        before = self.origins.get(cell, cell.state)
        assert isinstance(before, UnitState)
        self.network.set_state(cell, replace(cell.state, resolved=before.resolved))
        self._publish(cell)

    def _restore_first(self, cell: UnitCell) -> None:
        """Let a fusion and its members write the type from before all demands."""
        assert cell.first is not None
        if not cell.first.outputs[0].agrees(cell.resolved.outputs[0]):
            self.network.set_state(cell, replace(cell.state, resolved=cell.first, inner=cell.first))
            self._publish(cell)

    def _demands(self, cell: UnitCell) -> list[Choice | None]:
        return [_demand(edges, self.network.ranges) for edges in cell.outputs]

    def _resolve(self, cell: UnitCell, demands: Sequence[Choice | None]) -> Resolved | None:
        arrived = [e.arriving for e in cell.inputs]
        if not cell.resolver.is_fusion:
            return cell.resolver.forward(arrived, demands)
        if demands[0] is None:
            return None
        return cell.resolver.backward(cell.resolved, arrived, demands[0])

    def _set(self, cell: UnitCell, resolved: Resolved) -> None:
        """Set a unit's new types on all its edges."""
        self.network.set_state(cell, replace(cell.state, resolved=resolved, inner=resolved, conflicts=0))
        self._publish(cell)
        for edge, wanted in zip(cell.inputs, resolved.inputs, strict=True):
            self.network.set_wanted(edge, wanted)

    def _publish(self, cell: UnitCell) -> None:
        for edges, choice in zip(cell.outputs, cell.resolved.outputs, strict=True):
            for edge in edges:
                self.network.set_written(edge, choice)

    def _go_down(self, cell: UnitCell, but: Edge | None, way: int) -> Steps:
        for edge in cell.readers:
            if edge is not but and edge.in_conflict:
                yield self._follow(edge, False, way)

    def _go_up(self, cell: UnitCell, but: Edge | None, way: int) -> Steps:
        for edge in cell.inputs:
            if edge is not but and edge.in_conflict:
                yield self._follow(edge, True, way)

    def _change_input(self, edge: Edge, way: int) -> Steps:
        edges = self.network.edges_out[edge.tensor]
        choice = _demand(edges, self.network.ranges)
        if choice is None:
            return
        for other in edges:
            self.network.set_written(other, choice)
        for other in edges:
            if other is not edge and other.in_conflict:
                yield self._follow(other, False, way)


def _demand(edges: Sequence[Edge], ranges: Mapping[int, Range]) -> Choice | None:
    """Return the common demand of the readers of one output.

    No conflict: None. One demand and one present type: the demand. Otherwise, of all demands and present types, those
    of most bits, and of these the one with ends nearest to the file's range.
    """
    demands = _distinct([e.state.wanted for e in edges if e.in_conflict and e.state.asks_up])
    present = _distinct([e.state.written for e in edges])
    if not demands:
        return None
    if len(demands) == 1 and len(present) == 1:
        return demands[0]
    every = [*present, *demands]
    most = max(c.affine.bits for c in every)
    return min((c for c in every if c.affine.bits == most), key=lambda c: c.distance(ranges[edges[0].tensor]))


def _distinct(choices: Sequence[Choice | None]) -> list[Choice]:
    distinct: list[Choice] = []
    for choice in choices:
        if choice is not None and not any(choice.agrees(other) for other in distinct):
            distinct.append(choice)
    return distinct
