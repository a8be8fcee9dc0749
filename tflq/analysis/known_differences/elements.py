"""Which differing elements of one node's result a known difference explains."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tflq.analysis.difference import differing, distance, distance_in_units
from tflq.analysis.known_differences.row import Effect, KnownDifference, Place
from tflq.graph import Array

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class KnownElements:
    """How many elements one reason explains.

    Attributes:
        reason: why they differ.
        elements: their number.
    """

    reason: str
    elements: int


def known_elements(rows: Sequence[KnownDifference], place: Place, ours: Array) -> list[tuple[KnownDifference, Mask]]:
    """Return, for each row, the differing elements that it explains and no row before it.

    Args:
        rows: that hold for the node.
        place: the output, as TFLite has it.
        ours: what tflq computes from the same inputs, dtype[S, *shape]; of the same type and shape as TFLite's.
    """
    theirs = place.outputs[place.number]
    open_ = differing(ours, theirs)
    found = []
    for row in rows:
        if not open_.any():
            break
        covered = open_ & _covered(row, place, ours, theirs)
        if covered.any():
            found.append((row, covered))
            open_ = open_ & ~covered
    return found


def summed(known: Iterable[KnownElements]) -> tuple[KnownElements, ...]:
    """Add up the elements of each reason, reasons in the order of their first appearance."""
    counts: dict[str, int] = {}
    for k in known:
        counts[k.reason] = counts.get(k.reason, 0) + k.elements
    return tuple(KnownElements(reason, n) for reason, n in counts.items())


def units_apart(row: KnownDifference, place: Place, ours: Array, theirs: Array) -> NDArray[np.float64]:
    """Return how far each element is from TFLite's in the units of a row; inf where the type has none."""
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
