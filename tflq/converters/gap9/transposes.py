"""NNTool's search for transposes that can go, as its log tells it (docs/differences/gap9.md).

Its graph has a transpose in front of and behind each convolution and pool.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from math import prod

from tflq.converters.gap9.operators import ACTIVATIONS, ARITHMETIC, FLATTENING, MOVES, POOLS
from tflq.converters.gap9.units import Unit, units_of
from tflq.graph.operators import CONVERSIONS, CONVOLUTIONS
from tflq.graph.rewriting import GraphEditor

Shape = tuple[int, ...]
_ORDERED = (*CONVOLUTIONS, *POOLS)
_THROUGH = (*ACTIVATIONS, *CONVERSIONS)


class Kind(Enum):
    """What the search does at a place."""

    TRANSPOSE = "ends there, and removes it"
    ORDERED = "is rejected"
    COLUMNS = "ends there, and reorders the columns"
    THROUGH = "goes on"
    MOVES = "goes on through what moves values, which is not known"
    UNKNOWN = "goes on through what computes, which is not known"


@dataclass(eq=False)
class Place:
    """A node or fusion, a graph input or output, or a transpose.

    Attributes:
        name: NNTool's; of a fully connected layer in a fusion its own.
        kind: what the search does there.
        operands: what it reads, in NNTool's order.
        readers: of what it writes, in NNTool's order.
    """

    name: str
    kind: Kind
    operands: list[Edge] = field(default_factory=list)
    readers: list[Edge] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Edge:
    """A tensor between two places; what a transpose writes counts as the tensor that it reads."""

    source: Place
    reader: Place
    tensor: int
    shape: Shape


def transposes_of(editor: GraphEditor) -> list[Place]:
    """Return the transposes, at whose edges the whole graph hangs.

    NNTool follows the edges of a place in the order in which they were made last. Readers: as the file has them, then
    fully connected layers (it removes the reshape in front), additions in a fusion, Quantize nodes, then what has a
    transpose, fusions last. Operands: as the file has them, then fusions, Quantize nodes, transposes, those of fusions
    last.

    Args:
        editor: Graph before fusions, or after them with its Quantize nodes.
    """
    return _Builder(editor).transposes()


class _Builder:
    def __init__(self, editor: GraphEditor) -> None:
        self._editor, self._units = editor, units_of(editor)
        self._writers = {t: i for i, unit in enumerate(self._units) for t in unit.outputs}
        self._readers: dict[int, list[int]] = {}
        for i, unit in enumerate(self._units):
            for _, t in unit.inputs:
                self._readers.setdefault(t, []).append(i)
        self._once = self._made_once()
        self._copies: dict[int, list[int]] = {}
        for t, first in self._once.items():
            self._copies.setdefault(first, []).append(t)
        self._places = [Place(self._name(unit), self._kind(unit)) for unit in self._units]
        self._before = {i: self._transpose(i, "in0") for i, p in enumerate(self._places) if p.kind is Kind.ORDERED}
        self._behind = {i: self._transpose(i, "out0") for i in self._before}

    def _transpose(self, unit: int, end: str) -> Place:
        return Place(f"{self._places[unit].name}_trans_{end}", Kind.TRANSPOSE)

    def transposes(self) -> list[Place]:
        """Join the places; return the transposes."""
        found: list[tuple[Edge, tuple[int, ...], tuple[int, int]]] = []
        sources = {t: Place(self._editor.tensors[t].name, Kind.THROUGH) for t in self._editor.inputs}
        sources |= {t: self._behind.get(i, self._places[i]) for t, i in self._writers.items()}
        for i, unit in enumerate(self._units):
            if self._once.get(unit.outputs[0], unit.outputs[0]) != unit.outputs[0]:
                continue
            for position, read in unit.inputs:
                t = self._once.get(read, read)
                if t in sources:
                    edge = self._edge(sources[t], self._before.get(i, self._places[i]), t)
                    found.append((edge, self._turn_of_reader(i), self._turn_of_operand(t, position)))
        for t in self._editor.outputs:
            if t in sources:
                end = self._edge(sources[t], Place("output", Kind.THROUGH), t)
                found.append((end, (0, len(self._units)), (0, 0)))
        for edge, _, _ in sorted(found, key=lambda made: made[1]):
            edge.source.readers.append(edge)
        for edge, _, _ in sorted(found, key=lambda made: made[2]):
            edge.reader.operands.append(edge)
        for i, place in self._before.items():
            unit = self._units[i]
            place.readers.append(self._edge(place, self._places[i], unit.inputs[0][1]))
            self._behind[i].operands.append(self._edge(self._places[i], self._behind[i], unit.outputs[0]))
        return [*self._before.values(), *self._behind.values()]

    def _edge(self, source: Place, reader: Place, tensor: int) -> Edge:
        return Edge(source, reader, tensor, self._editor.shape(tensor))

    def _name(self, unit: Unit) -> str:
        fusion = "" if unit.operator == "fully_connected" else unit.first.attributes.text("fusion", "")
        return (fusion or unit.first.name).removesuffix("_merged")

    def _kind(self, unit: Unit) -> Kind:
        if unit.operator in _ORDERED:
            return Kind.ORDERED
        if unit.operator == "fully_connected":
            return Kind.COLUMNS
        shapes = {self._editor.tensors[t].shape for _, t in unit.inputs}
        if unit.operator in _THROUGH or (unit.operator in ARITHMETIC and len(shapes) == 1):
            return Kind.THROUGH
        split = unit.operator == "split" and unit.first.name.endswith("_merged_split")
        if split or self._flattens(unit):
            return Kind.THROUGH
        return Kind.MOVES if unit.operator in MOVES else Kind.UNKNOWN

    def _flattens(self, unit: Unit) -> bool:
        return unit.operator in FLATTENING and len(self._editor.tensors[unit.outputs[0]].shape) == 2

    def _turn_of_reader(self, i: int) -> tuple[int, ...]:
        unit = self._units[i]
        while self._flattens(unit) and self._readers.get(unit.outputs[0]):
            unit = self._units[self._readers[unit.outputs[0]][0]]
        if unit.operator == "quantize":
            return 3, *self._turn_of_quantize(unit.outputs[0])
        fused = unit.is_fusion
        if unit.operator in _ORDERED:
            return 4 + fused, i
        return 2 if fused else int(unit.operator == "fully_connected"), i

    def _turn_of_quantize(self, tensor: int) -> tuple[int, ...]:
        """Quantize nodes follow in the order of their readers, and those of one reader by operand."""
        units = [(i, t) for t in self._copies.get(tensor, [tensor]) for i in self._readers.get(t, ())]
        readers = [(i, p) for i, t in units for p, read in self._units[i].inputs if read == t]
        return min(((*self._turn_of_reader(i), p) for i, p in readers), default=(len(self._units),))

    def _made_once(self) -> dict[int, int]:
        """Return what a Quantize node writes -> the same of the first such node, where NNTool has one for both.

        They read one tensor, which nothing reads as it is: NNTool has no reshapes in front of fully connected layers.
        """
        found: dict[int, int] = {}
        first: dict[tuple[int, object], int] = {}
        for unit in self._units:
            source = self._flattened(unit.inputs[0][1]) if unit.operator == "quantize" else None
            if source is not None and self._read_by_quantize_alone(source):
                (written,) = unit.outputs
                found[written] = first.setdefault((source, self._editor.tensors[written].quantization), written)
        return found

    def _flattened(self, tensor: int) -> int:
        writer = self._writers.get(tensor)
        if writer is None or not self._flattens(self._units[writer]):
            return tensor
        return self._flattened(self._units[writer].inputs[0][1])

    def _read_by_quantize_alone(self, tensor: int) -> bool:
        readers = [self._units[i] for i in self._readers.get(tensor, ())]
        return tensor not in self._editor.outputs and all(
            unit.operator == "quantize" or (self._flattens(unit) and self._read_by_quantize_alone(unit.outputs[0]))
            for unit in readers
        )

    def _turn_of_operand(self, tensor: int, position: int) -> tuple[int, int]:
        writer = self._writers.get(tensor)
        if writer is None:
            return 0, position
        unit = self._units[writer]
        fused = unit.is_fusion
        if unit.operator in _ORDERED:
            return 4 + fused, writer
        return (3 if unit.operator == "quantize" else 2 * fused), position


@dataclass(frozen=True)
class Reached:
    """How the search came to a fully connected layer.

    Attributes:
        turned: whether it went upwards on the way; NNTool then takes the map's shape, transposed once more.
        fits: whether the shape that NNTool takes has as many elements as the layer has columns, else it fails.
        known: whether it came to places of known kinds alone.
        moves: whether it came to a concatenation, a slice, or another operator that moves values.
        shape: that NNTool takes the map's for, before it transposes it once more.
    """

    turned: bool
    fits: bool
    known: bool
    moves: bool
    shape: Shape


@dataclass
class _Way:
    """How a place was come to; `moves` are the steps from there that are still to be tried, each upwards or not."""

    moves: Iterator[tuple[Edge, bool]]
    came: Edge
    upwards: bool
    turned: bool
    shape: Shape


def search(editor: GraphEditor) -> dict[str, Reached]:
    """Return name of a fully connected layer -> how the search came to it, where it did.

    From each transpose, in the order of their names, NNTool goes upwards and downwards through what computes element
    by element, up to transposes that undo it, graph inputs and outputs, and fully connected layers. The attempt that
    removes more transposes counts, the one upwards if equal; no removed transpose starts another.

    Args:
        editor: Graph before fusions, or after them with its Quantize nodes: NNTool searches both.
    """
    removed: set[Place] = set()
    found: dict[str, Reached] = {}
    for start in sorted(transposes_of(editor), key=lambda place: place.name):
        attempts = [] if start in removed else [_follow(start, True), _follow(start, False)]
        best = max((seen for seen in attempts if seen is not None), key=lambda seen: len(_removed(seen)), default=None)
        if best is None:
            continue
        removed |= _removed(best)
        kinds = {place.kind for place in best}
        known, moves = kinds.isdisjoint((Kind.UNKNOWN, Kind.MOVES)), Kind.MOVES in kinds
        for place, way in best.items():
            if place.kind is Kind.COLUMNS:
                fits = prod(way.shape) == prod(place.operands[0].shape)
                found[place.name] = Reached(way.turned, fits, known, moves, way.shape)
    return found


def _removed(seen: dict[Place, _Way]) -> set[Place]:
    return {place for place in seen if place.kind is Kind.TRANSPOSE}


def _follow(start: Place, upwards: bool) -> dict[Place, _Way] | None:
    """Return the places that the search comes to from a transpose, and how; None where it is given up.

    Downwards into a place, its other operands follow, then its readers; upwards, its other readers, then its operands.
    It is given up at a convolution or pool, where it comes down to a place one of whose other operands it has come up
    to, and where it comes up to another output of what it has come up to. The shape that NNTool keeps is that of the
    place from which it last began to go down.
    """
    edges = start.operands if upwards else start.readers
    if not edges:
        return None
    first = _Way(iter([(edge, upwards) for edge in edges]), edges[0], upwards, False, edges[0].shape)
    seen, stack = {start: first}, [first]
    while stack:
        way = stack[-1]
        move = next(way.moves, None)
        if move is None:
            stack.pop()
            continue
        edge, up = move
        place = edge.source if up else edge.reader
        if place in seen:
            other_piece = edge.tensor != seen[place].came.tensor
            if up and seen[place].upwards and (other_piece or not way.upwards):
                return None
        elif place.kind is Kind.ORDERED:
            return None
        else:
            shape = edge.shape if up else way.shape
            seen[place] = _Way(_moves(place, edge, up), edge, up, way.turned or up, shape)
            stack.append(seen[place])
    return seen


def _moves(place: Place, came: Edge, upwards: bool) -> Iterator[tuple[Edge, bool]]:
    operands = [(edge, True) for edge in place.operands if edge is not came]
    readers = [(edge, False) for edge in place.readers if edge is not came]
    if place.kind is Kind.COLUMNS:
        return iter(())
    if place.kind is Kind.TRANSPOSE:
        return iter(readers if upwards else ())
    return iter([*readers, *operands] if upwards else [*operands, *readers])
