"""Counts how far floats lie apart, in units in the last place."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tflq.graph import Array


def distance(ours: Array, theirs: Array) -> NDArray[np.int64]:
    """Return the numbers of their type between floats of equal type: int64[shape].

    0 for two NaN, the largest integer for one.
    """
    width = np.dtype(f"i{ours.dtype.itemsize}")
    low = np.iinfo(width).min
    order = [np.where(raw < 0, low - raw.astype(np.int64), raw) for raw in (ours.view(width), theirs.view(width))]
    one_nan = np.isnan(ours) != np.isnan(theirs)
    both_nan = np.isnan(ours) & np.isnan(theirs)
    apart = np.abs(order[0].astype(np.int64) - order[1].astype(np.int64))
    return np.asarray(np.where(both_nan, 0, np.where(one_nan, np.iinfo(np.int64).max, apart)))


def distance_in_units(ours: Array, theirs: Array, unit: Array) -> NDArray[np.float64]:
    """Return |ours - theirs| / unit; 0 where they are equal or both NaN, inf where one is."""
    same = (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))
    with np.errstate(all="ignore"):
        apart = np.abs(ours.astype(np.float64) - theirs.astype(np.float64)) / unit.astype(np.float64)
    return np.asarray(np.where(same, 0.0, np.where(np.isnan(apart), np.inf, apart)))
