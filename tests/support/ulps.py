"""Counts units in the last place between floats of tflq and TFLite; the bounds are in tests/support/exceptions.py."""

from __future__ import annotations

import numpy as np

from tflq.analysis.oracle import Oracle
from tflq.converters.tflite import model_from_bytes, model_to_bytes
from tflq.graph import Array, Graph
from tflq.interpreter import Engine


def distance(ours: Array, theirs: Array) -> np.ndarray:
    """Units in the last place between floats of equal type; 0 for two NaN, the largest integer for one."""
    width = np.dtype(f"i{ours.dtype.itemsize}")
    low = np.iinfo(width).min
    order = [np.where(raw < 0, low - raw.astype(np.int64), raw) for raw in (ours.view(width), theirs.view(width))]
    one_nan = np.isnan(ours) != np.isnan(theirs)
    both_nan = np.isnan(ours) & np.isnan(theirs)
    apart = np.abs(order[0].astype(np.int64) - order[1].astype(np.int64))
    return np.where(both_nan, 0, np.where(one_nan, np.iinfo(np.int64).max, apart))


def distance_in_units(ours: Array, theirs: Array, unit: Array) -> np.ndarray:
    """How many `unit`s two arrays are apart; 0 where they are equal or both NaN."""
    same = (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))
    with np.errstate(all="ignore"):
        apart = np.abs(ours.astype(np.float64) - theirs.astype(np.float64)) / unit.astype(np.float64)
    return np.where(same, 0, np.where(np.isnan(apart), np.inf, apart))


def check_within_ulps(
    oracle: Oracle, graph: Graph, inputs: list[Array], ulps: float, unit: Array | None = None
) -> float:
    """Assert that the graph's outputs are at most `ulps` apart from TFLite's; return how far they are.

    `unit` states another unit than the last place of the result.
    """
    content = model_to_bytes(graph)
    read = model_from_bytes(content, "single operator").main
    judged = oracle.run(content, inputs, tensors="outputs")
    ours = Engine(read).run(inputs)
    worst = 0.0
    for t, value in ours.items():
        theirs = judged.tensors[t]
        assert (value.dtype, value.shape) == (theirs.dtype, theirs.shape)
        apart = distance(value, theirs) if unit is None else distance_in_units(value, theirs, unit)
        worst = max(worst, float(apart.max(initial=0)))
        place = np.unravel_index(int(np.argmax(apart)), apart.shape)
        assert worst <= ulps, f"{worst} ulps at {place}: {value[place]!r}, TFLite has {theirs[place]!r}"
    return worst
