"""Explanation of the differences of a whole model: at the node that causes them, and downstream of it.

A known difference of one node explains differing elements of its result.

A difference propagates to all values that depend on it. So a node with a differing result runs again in isolation, on
TFLite's values of its inputs. Elements that then differ are caused by this node; either a row of the table explains
them or they are unknown. Elements that then agree inherit their difference from the inputs; it is known if all
differences of the inputs are known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tflq.diagnosis.difference import differing, distance, distance_in_units
from tflq.diagnosis.known_differences.row import Effect, KnownDifference, Place
from tflq.diagnosis.known_differences.rows import rows_of_node
from tflq.errors import TflqError
from tflq.graph import ABSENT, Array, Graph, Model, Node
from tflq.interpreter import Engine
from tflq.interpreter.execution.control import CONTROL
from tflq.interpreter.execution.engine import State
from tflq.interpreter.execution.settle import resize
from tflq.oracle import OracleIdentity

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class KnownElements:
    """How many elements one reason explains.

    Attributes:
        reason: Reason of the difference.
        elements: Number of elements.
    """

    reason: str
    elements: int


def known_elements(rows: Sequence[KnownDifference], place: Place, ours: Array) -> list[tuple[KnownDifference, Mask]]:
    """Return, for each row, the differing elements that it explains and no row before it.

    Args:
        rows: Rows that apply to the node.
        place: the output, as TFLite has it.
        ours: tflq's result for the same inputs, dtype[S, *shape]; type and shape are TFLite's.
    """
    theirs = place.outputs[place.number]
    open_ = differing(ours, theirs)
    explained = []
    for row in rows:
        if not open_.any():
            break
        covered = open_ & _covered(row, place, ours, theirs)
        if covered.any():
            explained.append((row, covered))
            open_ = open_ & ~covered
    return explained


def summed(known: Iterable[KnownElements]) -> tuple[KnownElements, ...]:
    """Add up the elements of each reason, reasons in the order of their first appearance."""
    counts: dict[str, int] = {}
    for k in known:
        counts[k.reason] = counts.get(k.reason, 0) + k.elements
    return tuple(KnownElements(reason, n) for reason, n in counts.items())


def units_apart(row: KnownDifference, place: Place, ours: Array, theirs: Array) -> NDArray[np.float64]:
    """Return each element's distance from TFLite's in the units of a row; inf if the type has no units."""
    if ours.dtype.kind == "c":
        unit = _unit(row, place, theirs)
        parts = [distance_in_units(getattr(ours, p), getattr(theirs, p), unit) for p in ("real", "imag")]
        return np.asarray(np.maximum(*parts))
    if ours.dtype.kind != "f":
        return np.where(differing(ours, theirs), np.inf, 0.0)
    if row.of == "result":
        return distance(ours, theirs).astype(np.float64)
    return distance_in_units(ours, theirs, _unit(row, place, theirs))


def _unit(row: KnownDifference, place: Place, theirs: Array) -> Array:
    with np.errstate(all="ignore"):
        source = place.inputs[0] if row.of == "input" else None
        if source is not None:
            return np.asarray(np.spacing(np.abs(source)))
        largest = np.abs(theirs).max(axis=tuple(range(1, theirs.ndim)), keepdims=True, initial=0)
        return np.asarray(np.spacing(largest))


def _covered(row: KnownDifference, place: Place, ours: Array, theirs: Array) -> Mask:
    if row.effect is Effect.LAST_BITS:
        return np.asarray(units_apart(row, place, ours, theirs) <= row.units)
    return np.ones(theirs.shape, np.bool_) if row.elements is None else row.elements(place)


INHERITED = "computed from tensors whose differences are known"


class Blame:
    """Explanation, chunk by chunk, of the differences between tflq's and TFLite's run of a model."""

    def __init__(self, model: Model, identity: OracleIdentity | None = None, state: State = "independent") -> None:
        """Find the nodes of the main graph that the table covers.

        Args:
            model: Model as read from the file, or lowered.
            identity: Identity of TFLite; None if unknown, which excludes rows of one package or set of kernels.
            state: Handling of state in the run.
        """
        self._model, self._state = model, state
        graph = model.main
        judge = ("", "") if identity is None else (identity.package, identity.kernels)
        self._rows = [rows_of_node(graph, node, *judge) for node in graph.nodes]
        self._engines: dict[int, Engine] = {}
        self._found: dict[int, dict[str, int]] = {}

    def known(self, tensor: int) -> tuple[KnownElements, ...]:
        """Return the differing elements of a tensor that are explained, over all chunks."""
        return tuple(KnownElements(reason, n) for reason, n in self._found.get(tensor, {}).items())

    def add(self, inputs: list[Array], ours: Mapping[int, Array], theirs: Mapping[int, Array]) -> None:
        """Explain the differences of a chunk.

        Args:
            inputs: Inputs of the graph, dtype[S, *shape].
            ours: tflq's values by tensor.
            theirs: Values that TFLite returned, with equal shapes in all samples.
        """
        if not any(self._rows):
            return
        graph = self._model.main
        known = {**dict(zip(graph.inputs, inputs, strict=True)), **theirs}
        none = np.zeros(max((len(x) for x in known.values()), default=0), np.bool_)
        unknown: dict[int, Mask] = dict.fromkeys(graph.inputs, none)
        for number, node in enumerate(graph.nodes):
            returned = [t for t in node.outputs if t in theirs]
            comparable = bool(returned) and all(_comparable(ours[t], theirs[t]) for t in returned)
            if comparable and not any(differing(ours[t], theirs[t]).any() for t in returned):
                unknown |= dict.fromkeys(returned, none)
            elif comparable:
                self._explain(number, node, known, ours, unknown)

    def _explain(
        self,
        number: int,
        node: Node,
        known: Mapping[int, Array],
        ours: Mapping[int, Array],
        unknown: dict[int, Mask],
    ) -> None:
        """Add the counts of a node that differs, and to `unknown` the samples bool[S] with an element not explained."""
        alone = self._alone(number, node, known)
        tensors = self._model.main.tensors
        before = [t for t in node.inputs if t != ABSENT and not (tensors[t].is_constant or tensors[t].is_variable)]
        explained_before = alone is not None and all(t in unknown for t in before)
        for place, t in enumerate(node.outputs):
            if t not in known:
                continue
            theirs = known[t]
            differs = differing(ours[t], theirs)
            own = ours[t] if alone is None else alone[t]
            here = self._place(node, place, known)
            counts = self._found.setdefault(t, {})
            open_ = differs.copy()
            for row, mask in known_elements(self._rows[number], here, own):
                _count(counts, f"{node.operator}: {row.words}: {row.reason}", mask & open_)
                open_ &= ~mask
            if explained_before:
                clean = ~np.any([unknown[i] for i in before], axis=0)
                inherited = open_ & ~differing(own, theirs) & clean.reshape(-1, *[1] * (theirs.ndim - 1))
                _count(counts, INHERITED, inherited)
                open_ &= ~inherited
            unknown[t] = open_.reshape(len(open_), -1).any(axis=1)

    @cached_property
    def _settled(self) -> Graph:
        """The main graph with inferred shapes, which a node in isolation requires."""
        graph = self._model.main
        return graph if all(node.params is not None for node in graph.nodes) else resize(graph, {})

    @cached_property
    def _read(self) -> frozenset[int]:
        """Tensors that a node reads, and the graph's outputs."""
        graph = self._model.main
        return frozenset(graph.outputs).union(*(node.inputs for node in graph.nodes))

    def _place(self, node: Node, number: int, known: Mapping[int, Array]) -> Place:
        tensors = self._model.main.tensors
        inputs: list[Array | None] = []
        for t in node.inputs:
            data = tensors[t].data if t != ABSENT else None
            inputs.append(known.get(t) if data is None else data[None])
        is_read = node.outputs[number] in self._read
        return Place(node, number, inputs, [known.get(t, np.zeros(0)) for t in node.outputs], is_read)

    def _alone(self, number: int, node: Node, known: Mapping[int, Array]) -> dict[int, Array] | None:
        """Run a node on TFLite's values; None if a value is absent, or if the node continues from an earlier sample."""
        tensors = self._model.main.tensors
        read = [t for t in dict.fromkeys(node.inputs) if t != ABSENT and not tensors[t].is_constant]
        keeps = any(tensors[t].is_variable for t in read)
        needed = [t for t in read if not tensors[t].is_variable]
        lacks_graphs = node.operator in CONTROL and len(self._model.graphs) == 1
        if not needed or lacks_graphs or any(t not in known for t in needed) or (keeps and self._state == "stream"):
            return None
        try:
            if number not in self._engines:
                graph = replace(self._settled.copy(), nodes=[node], inputs=tuple(needed), outputs=node.outputs)
                graphs = [graph, *self._model.graphs[1:]]
                self._engines[number] = Engine(graph, "tflite", graphs=graphs, state=self._state)
            results = self._engines[number].run([known[t] for t in needed], node.outputs)
        except TflqError:
            return None
        return results if all(_comparable(results[t], known[t]) for t in node.outputs if t in known) else None


def _count(counts: dict[str, int], reason: str, mask: Mask) -> None:
    number = int(np.count_nonzero(mask))
    if number:
        counts[reason] = counts.get(reason, 0) + number


def _comparable(ours: Array, theirs: Array) -> bool:
    return ours.dtype == theirs.dtype and ours.shape == theirs.shape and ours.dtype.kind != "O"
