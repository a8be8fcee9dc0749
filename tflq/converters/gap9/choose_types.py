"""The type of every tensor between units, and where a Quantize node must stand (docs/gap9.md, 8).

Tensors that moves connect form a class with one type. A class listens to what its readers demand; an edge whose
reader cannot take the type gets a Quantize node; a producer that cannot write the type is cut off its class.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tflq.converters.gap9.affine_types import power_of_two, symmetric
from tflq.converters.gap9.type_rules import (
    INT8,
    Codes,
    Demand,
    Offer,
    demand_of,
    offer_of,
    pool_codes,
    range_of,
)
from tflq.converters.gap9.units import Unit, units_of
from tflq.graph import Affine, Graph, Range

Edge = tuple[int, int]
"""(node, input position)."""


@dataclass(frozen=True)
class TypePlan:
    """The decision.

    Attributes:
        units: the units that it was made for.
        types: tensor between units -> type.
        conversions: edge -> type that a Quantize node in front of it writes.
    """

    units: tuple[Unit, ...]
    types: Mapping[int, Affine]
    conversions: Mapping[Edge, Affine]


@dataclass
class _Class:
    tensors: set[int]
    offers: list[tuple[int, Offer]] = field(default_factory=list)
    demands: list[tuple[int, Demand]] = field(default_factory=list)
    pools: list[tuple[Edge, Codes]] = field(default_factory=list)
    must_be_symmetric: bool = False
    chosen: Affine | None = None
    own: Range | None = None


def choose_types(graph: Graph, bits: int, allow_asymmetric_out: bool, short_softmax: frozenset[str]) -> TypePlan:
    """Decide every type.

    Args:
        graph: with ranges, fusions and engines.
        bits: of NE16's activations, 8 or 16.
        allow_asymmetric_out: for graph inputs and outputs.
        short_softmax: names of the softmax nodes that write int8.
    """
    units = units_of(graph)
    solver = _Solver(graph, units, bits, allow_asymmetric_out, short_softmax)
    cuts: set[Edge] = set()
    while True:
        classes = solver.solve(cuts)
        found = solver.new_cuts(classes, cuts)
        if not found:
            return TypePlan(tuple(units), _types(classes), solver.conversions(classes))
        cuts |= found


def _types(classes: list[_Class]) -> dict[int, Affine]:
    return {t: c.chosen for c in classes for t in c.tensors if c.chosen is not None}


class _Solver:
    def __init__(
        self, graph: Graph, units: list[Unit], bits: int, allow_asymmetric_out: bool, short_softmax: frozenset[str]
    ) -> None:
        self.graph, self.units, self.bits = graph, units, bits
        self.allow_asymmetric_out, self.short_softmax = allow_asymmetric_out, short_softmax

    def solve(self, cuts: set[Edge]) -> list[_Class]:
        """Return the classes with their types, in order of their first producers."""
        member: dict[int, _Class] = {}
        for t in self.graph.inputs:
            member[t] = _Class({t}, [(t, self._input_offer(t))])
        for unit in self.units:
            self._place(unit, member, cuts)
        classes = list({id(c): c for c in member.values()}.values())
        for unit in self.units:
            self._listen(unit, member, cuts)
        for t in self.graph.outputs:
            if t in member:
                member[t].must_be_symmetric |= not self.allow_asymmetric_out
        for found in classes:
            _decide(found, self.graph)
        return classes

    def new_cuts(self, classes: list[_Class], cuts: set[Edge]) -> set[Edge]:
        """Return the edges of moves where a producer cannot write, or a pool cannot take, the type of the class."""
        found: set[Edge] = set()
        for group in classes:
            assert group.chosen is not None
            unable = {t for t, offer in group.offers if not _can_write(offer, group.chosen)}
            if len(unable) < len(group.offers):
                found |= {e for e, t in self._move_edges() if t in unable}
            found |= {e for e, codes in group.pools if codes != Codes.of(group.chosen)}
        return found - cuts

    def conversions(self, classes: list[_Class]) -> dict[Edge, Affine]:
        """Return the edges that need a Quantize node, with its type."""
        member = {t: c for c in classes for t in c.tensors}
        result: dict[Edge, Affine] = {}
        for unit in self.units:
            for position, t in unit.inputs:
                group, edge = member.get(t), (unit.nodes[0], position)
                if group is None or group.chosen is None or group.own is None:
                    continue
                if unit.is_move:
                    wanted = member[unit.outputs[0]].chosen
                    if wanted is not None and wanted != group.chosen:
                        result[edge] = wanted
                    continue
                demand = demand_of(self.graph, unit, self.bits)
                if not demand.accepts(group.chosen):
                    result[edge] = demand.converted(range_of(self.graph, t), group.own, Codes.of(group.chosen))
        return result

    def _move_edges(self) -> list[tuple[Edge, int]]:
        return [((u.nodes[0], p), t) for u in self.units if u.is_move for p, t in u.inputs]

    def _input_offer(self, tensor: int) -> Offer:
        stated = range_of(self.graph, tensor)
        is_symmetric = bool(stated.minimum[0] != 0) and not self.allow_asymmetric_out
        own_codes = Codes(self.bits, False) if any(u.on_ne16 for u in self.units) else INT8
        return Offer((own_codes, INT8, Codes(self.bits, False)), stated, symmetric=is_symmetric, follows=True)

    def _offer(self, unit: Unit) -> Offer:
        short = self.graph.nodes[unit.nodes[0]].name in self.short_softmax
        return offer_of(self.graph, unit, self.bits, short)

    def _place(self, unit: Unit, member: dict[int, _Class], cuts: set[Edge]) -> None:
        """Put the outputs of a unit into classes: a move's into that of its inputs."""
        joined = [member[t] for p, t in unit.inputs if unit.is_move and t in member and (unit.nodes[0], p) not in cuts]
        group = joined[0] if joined else _Class(set(), [(unit.outputs[0], self._offer(unit))])
        for other in joined[1:]:
            if other is not group:
                group.tensors |= other.tensors
                group.offers += other.offers
                member.update(dict.fromkeys(other.tensors, group))
        group.tensors.update(unit.outputs)
        member.update(dict.fromkeys(unit.outputs, group))

    def _listen(self, unit: Unit, member: dict[int, _Class], cuts: set[Edge]) -> None:
        """Tell the classes of the inputs what a unit demands."""
        if unit.padded_pool and not unit.on_ne16:
            member[unit.outputs[0]].must_be_symmetric = True
        for position, t in unit.inputs:
            edge = (unit.nodes[0], position)
            if t not in member:
                continue
            codes = pool_codes(unit, self.bits)
            if not unit.is_move:
                member[t].demands.append((t, demand_of(self.graph, unit, self.bits)))
            elif codes is not None and edge in cuts:
                member[t].demands.append((t, Demand(codes, symmetric=unit.padded_pool)))
            elif codes is not None:
                member[t].pools.append((edge, codes))


def _decide(group: _Class, graph: Graph) -> None:
    fixed = next((o for _, o in group.offers if o.fixed is not None), None)
    if fixed is not None:
        group.chosen, group.own = fixed.fixed, fixed.own
        return
    codes = _codes(group)
    heard = [(t, d) for t, d in group.demands if d.codes == codes]
    is_symmetric = group.must_be_symmetric or any(o.symmetric_only for _, o in group.offers)
    # Quantized values that a uint8 producer takes over from its readers are what a conversion would have written.
    taken_over = codes.signed and any(not o.codes[0].signed for _, o in group.offers if not o.follows)
    is_symmetric |= any(d.symmetric or d.power_of_two for _, d in heard) or taken_over
    from_file = any(d.pushes_file_range for _, d in heard) or (taken_over and bool(heard) and heard[0][1].file_range)
    best: tuple[Affine, Range] | None = None
    file = range_of(graph, group.offers[0][0])
    for t, offer in group.offers:
        # A type that is symmetric by itself satisfies a padded filter as it is.
        range_ = range_of(graph, t) if from_file and not offer.symmetric else offer.own
        keeps_middle = offer.symmetric and (codes.signed or not offer.follows)
        candidate = codes.quantised(range_, is_symmetric or keeps_middle)
        if best is None or candidate.scale[0] > best[0].scale[0]:
            best = candidate, offer.own
    assert best is not None
    chosen, group.own = best
    group.chosen = min(_wanted(heard, chosen, file if from_file else best[1]), key=lambda a: _distance(a, file))


def _wanted(heard: list[tuple[int, Demand]], chosen: Affine, range_: Range) -> list[Affine]:
    """Return the types that readers ask for in so many words, in their order; the class's own where nobody does."""
    found: list[Affine] = []
    for _, demand in heard:
        if demand.exact is not None:
            found.append(demand.exact)
        elif demand.power_of_two:
            found.append(power_of_two(symmetric(range_, demand.codes.bits)))
        elif demand.symmetric:
            found.append(chosen)
    return found or [chosen]


def _distance(affine: Affine, range_: Range) -> float:
    """How far the numbers that a type can hold end from a range: |min - rmin| + |max - rmax|."""
    scale, zero_point = float(affine.scale[0]), int(affine.zero_point[0])
    low, high = (affine.minimum_code - zero_point) * scale, (affine.maximum_code - zero_point) * scale
    return abs(low - float(range_.minimum[0])) + abs(high - float(range_.maximum[0]))


def _codes(group: _Class) -> Codes:
    """Return the integer type: what every reader asks for if every producer can write it, else the producers' own."""
    asked = [d.codes for _, d in group.demands] + [codes for _, codes in group.pools]
    offers = [o for _, o in group.offers]
    if all(o.follows for o in offers):
        return asked[0] if asked else offers[0].codes[0]
    if asked and len(set(asked)) == 1 and all(asked[0] in o.codes or o.follows for o in offers):
        return asked[0]
    own = [o.codes[0] for o in offers if not o.follows]
    common = [c for c in own if all(c in o.codes or o.follows for o in offers)]
    return (common or [c for c in own if not c.signed] or own)[0]


def _can_write(offer: Offer, chosen: Affine) -> bool:
    if offer.fixed is not None:
        return offer.fixed is chosen
    middle = 0 if chosen.signed else 1 << (chosen.bits - 1)
    if offer.symmetric_only and int(chosen.zero_point[0]) != middle:
        return False
    return offer.follows or Codes.of(chosen) in offer.codes
