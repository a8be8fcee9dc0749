"""Operators of two 8-bit inputs as tables of all 65536 pairs of codes: exact by construction, whatever the rounding."""

from __future__ import annotations

import numpy as np

from tflq.graph import Array


def look_up_pairs(pairs: Array, x: Array, y: Array) -> Array:
    """Return pairs[256 raw(x) + raw(y)], x and y broadcast against each other.

    Args:
        pairs: T8[65536].
        x: 8-bit integers.
        y: 8-bit integers, of the same rank.
    """
    index = x.view(np.uint8).astype(np.uint16) << np.uint16(8)
    # Every index is below 65536: "clip" only spares numpy the check.
    return np.asarray(np.take(pairs, index | y.view(np.uint8), mode="clip"))
