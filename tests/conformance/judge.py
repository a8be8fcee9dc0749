"""Runs one case in TFLite and in tflq and says how they compare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from tests.conformance.case import Case
from tests.conformance.cells import Cell
from tests.support.single_op import bits
from tflq.converters.tflite import model_from_bytes, model_to_bytes
from tflq.diagnosis.known_differences import KnownDifference, Place, known_elements, rows_of, rows_of_node, units_apart
from tflq.errors import OracleError, TflqError
from tflq.graph import Array
from tflq.interpreter import Engine
from tflq.oracle import Oracle


class Outcome(Enum):
    """What came of one case."""

    EXACT = "exact"
    STAND_IN = "equal to a stand-in"
    LISTED = "listed"
    INEXACT = "inexact"
    REFUSED_BY_BOTH = "refused by both"
    REFUSED_BY_TFLITE = "refused by TFLite"
    REFUSED_BY_US = "refused by us"
    CRASHED = "crashed"

    @property
    def is_failure(self) -> bool:
        return self in (Outcome.INEXACT, Outcome.REFUSED_BY_US, Outcome.CRASHED)


@dataclass(frozen=True)
class Verdict:
    """An outcome, with one line about it where results are not equal."""

    outcome: Outcome
    words: str = ""


def judge(oracle: Oracle, cell: Cell, case: Case) -> Verdict:
    """Run a case on both sides, through our writer and reader, and compare every bit of its outputs."""
    ours: Sequence[Array] | None = None
    refusal = ""
    content = b""
    try:
        content = model_to_bytes(case.model)
        ours = _ours(content, case)
    except TflqError as error:
        refusal = str(error)
    except Exception as error:
        return Verdict(Outcome.CRASHED, f"{type(error).__name__}: {error}".split("\n")[0])
    try:
        theirs = _theirs(oracle, content, case)
    except OracleError as error:
        both = Outcome.REFUSED_BY_BOTH if ours is None else Outcome.REFUSED_BY_TFLITE
        return Verdict(both, f"TFLite: {error}; tflq: {refusal or 'runs'}".replace("\n", " "))
    if ours is None:
        listed = any(row.refusal and row.refusal in refusal for row in rows_of(cell.operator, str(cell.kind)))
        return Verdict(Outcome.LISTED if listed else Outcome.REFUSED_BY_US, refusal)
    return _compare(oracle, case, ours, theirs)


def _ours(content: bytes, case: Case) -> list[Array]:
    model = model_from_bytes(content, "case")
    with np.errstate(all="ignore"):
        found = Engine(model.main, graphs=model.graphs, state=case.state).run(case.inputs)
    return [found[t] for t in model.main.outputs]


def _theirs(oracle: Oracle, content: bytes, case: Case) -> list[Array]:
    judge_, inputs, judged = content, case.inputs, case.model
    if case.stand_in is not None:
        judge_, inputs, judged = model_to_bytes(case.stand_in.model), case.stand_in.inputs, case.stand_in.model
    ran = oracle.run(judge_, inputs, tensors="outputs", state=case.state)
    outputs = [_one(ran, t) for t in judged.main.outputs]
    return case.stand_in.restore(outputs) if case.stand_in is not None else outputs


def _one(ran: object, t: int) -> Array:
    if t in ran.tensors:
        return ran.tensors[t]
    if t in ran.ragged:
        parts = ran.ragged[t]
        ragged = np.empty(len(parts), object)
        ragged[:] = parts
        return ragged
    raise OracleError(f"tensor {t}: {ran.unavailable[t]}")


def _compare(oracle: Oracle, case: Case, ours: Sequence[Array], theirs: Sequence[Array]) -> Verdict:
    if case.defined is not None:
        ours, theirs = case.defined(list(ours)), case.defined(list(theirs))
    words = []
    for number, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
        for a, b in _pairs(mine, other):
            if (a.shape, a.dtype) != (b.shape, b.dtype):
                found = f"output {number}: {a.dtype}{list(a.shape)}, TFLite has {b.dtype}{list(b.shape)}"
                return Verdict(Outcome.INEXACT, found)
            same = (bits(a) == bits(b)) | ((a != a) & (b != b))
            if same.all():
                continue
            for row, mask, far in _known(oracle, case, number, a, [*theirs[:number], b, *theirs[number + 1 :]]):
                same |= mask
                words.append(f"{far:g} ulp" if row.units else row.what)
            if not same.all():
                place = tuple(int(i) for i in np.argwhere(~same)[0])
                found = f"output {number}: {np.count_nonzero(~same)} of {same.size} differ; at {list(place)} "
                return Verdict(Outcome.INEXACT, f"{found}{a[place]!r}, TFLite has {b[place]!r}")
    if words:
        return Verdict(Outcome.LISTED, max(words))
    return Verdict(Outcome.EXACT if case.stand_in is None else Outcome.STAND_IN)


def _known(
    oracle: Oracle, case: Case, number: int, ours: Array, theirs: Sequence[Array]
) -> list[tuple[KnownDifference, np.ndarray, float]]:
    """Return the differences of an output that are known of the node that writes it, each with the farthest element."""
    graph = case.model.main
    node = next((n for n in graph.nodes if graph.outputs[number] in n.outputs), None)
    if node is None or case.stand_in is not None or len(node.outputs) != len(theirs):
        return []
    given = dict(zip(graph.inputs, case.inputs, strict=True))
    constants = {t: tensor.data[None] for t, tensor in enumerate(graph.tensors) if tensor.data is not None}
    operands = [({**constants, **given}).get(t) for t in node.inputs]
    place = Place(node, number, operands, theirs)
    rows = rows_of_node(graph, node, oracle.identity.package, oracle.identity.kernels)
    return [
        (row, mask, float(units_apart(row, place, ours, theirs[number])[mask].max()))
        for row, mask in known_elements(rows, place, ours)
    ]


def _pairs(mine: Array, other: Array) -> list[tuple[Array, Array]]:
    """Single arrays, or those of each sample where shapes differ between samples."""
    ragged = mine.dtype == object and mine.size and isinstance(mine.reshape(-1)[0], np.ndarray)
    other_ragged = other.dtype == object and other.size and isinstance(other.reshape(-1)[0], np.ndarray)
    if not ragged and not other_ragged:
        return [(mine, other)]
    return [(np.asarray(a), np.asarray(b)) for a, b in zip(mine, other, strict=True)]
