"""Runs one case in TFLite and in tflq and says how they compare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from tests.conformance.case import Case
from tests.conformance.cells import Cell
from tests.conformance.listed import Tolerance, refusal_is_listed, tolerance
from tests.support.single_op import bits
from tests.support.ulps import distance, distance_in_units
from tflq.analysis.oracle import Oracle
from tflq.converters.tflite import model_from_bytes, model_to_bytes
from tflq.errors import OracleError, TflqError
from tflq.graph import Array
from tflq.interpreter import Engine


class Outcome(Enum):
    """What came of one case."""

    EXACT = "exact"
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
    """An outcome, with one line about it where it is not `exact`."""

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
        listed = refusal_is_listed(cell, refusal)
        return Verdict(Outcome.LISTED if listed else Outcome.REFUSED_BY_US, refusal)
    return _compare(cell, case, ours, theirs)


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


def _compare(cell: Cell, case: Case, ours: Sequence[Array], theirs: Sequence[Array]) -> Verdict:
    if case.defined is not None:
        ours, theirs = case.defined(list(ours)), case.defined(list(theirs))
    worst = 0.0
    allowed = tolerance(cell)
    for number, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
        for a, b in _pairs(mine, other):
            if (a.shape, a.dtype) != (b.shape, b.dtype):
                words = f"output {number}: {a.dtype}{list(a.shape)}, TFLite has {b.dtype}{list(b.shape)}"
                return Verdict(Outcome.INEXACT, words)
            same = (bits(a) == bits(b)) | ((a != a) & (b != b))
            if same.all():
                continue
            units = _units(a, b, case, allowed)
            worst = max(worst, units)
            if units > allowed.ulps:
                place = tuple(int(i) for i in np.argwhere(~same)[0])
                words = (
                    f"output {number}: {np.count_nonzero(~same)} of {same.size} differ; at {list(place)} {a[place]!r}, "
                )
                far = "" if units == np.inf else f" ({units:g} ulp, {allowed.ulps:g} allowed)"
                return Verdict(Outcome.INEXACT, words + f"TFLite has {b[place]!r}{far}")
    return Verdict(Outcome.LISTED, f"{worst:g} ulp") if worst else Verdict(Outcome.EXACT)


def _pairs(mine: Array, other: Array) -> list[tuple[Array, Array]]:
    """Single arrays, or those of each sample where shapes differ between samples."""
    ragged = mine.dtype == object and mine.size and isinstance(mine.reshape(-1)[0], np.ndarray)
    other_ragged = other.dtype == object and other.size and isinstance(other.reshape(-1)[0], np.ndarray)
    if not ragged and not other_ragged:
        return [(mine, other)]
    return [(np.asarray(a), np.asarray(b)) for a, b in zip(mine, other, strict=True)]


def _units(a: Array, b: Array, case: Case, allowed: Tolerance) -> float:
    """The largest distance in the unit of the tolerance; infinite where the type has none."""
    if a.dtype.kind not in "fc" or allowed.ulps == 0:
        return float("inf")
    if allowed.unit == "result" and a.dtype.kind == "f":
        return float(distance(a, b).max())
    with np.errstate(all="ignore"):
        if allowed.unit == "input":
            unit = np.spacing(np.abs(case.inputs[0]))
        else:
            largest = np.abs(b).max(axis=tuple(range(1, b.ndim)), keepdims=True)
            unit = np.spacing(largest)
    return float(distance_in_units(a, b, unit).max()) if a.dtype.kind == "f" else _complex_units(a, b, unit)


def _complex_units(a: Array, b: Array, unit: Array) -> float:
    return max(float(distance_in_units(getattr(a, p), getattr(b, p), unit).max()) for p in ("real", "imag"))
