"""NNTool's search for transposes that can go, as its log tells it (docs/gap9.md, 17.15)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from tflq.converters.gap9.transposes.places import Edge, Kind, Place, Shape, transposes_of
from tflq.graph import Graph


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


def search(graph: Graph) -> dict[str, Reached]:
    """Return name of a fully connected layer -> how the search came to it, where it did.

    From each transpose, in the order of their names, NNTool goes upwards and downwards through what computes element
    by element, up to transposes that undo it, graph inputs and outputs, and fully connected layers. The attempt that
    removes more transposes counts, the one upwards if equal; no removed transpose starts another.

    Args:
        graph: before fusions, or behind them with its Quantize nodes: NNTool searches both.
    """
    removed: set[Place] = set()
    found: dict[str, Reached] = {}
    for start in sorted(transposes_of(graph), key=lambda place: place.name):
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
