"""Real numbers on grids of powers of two, so that their sums of products are exact: the same in any order of addition.

BLAS adds in an order that depends on the processor, and a weight at a tie may follow. Whole numbers whose sums stay
below 2^53 have one sum only.
"""

from __future__ import annotations

import math

import numpy as np

from tflq.arrays import Doubles

EXACT_BITS = 53
"""Of float64: whole numbers up to 2^53 are exact, and so are sums that stay below."""


def on_grid(x: Doubles, bits: int, axis: tuple[int, ...] | None = None) -> tuple[Doubles, Doubles]:
    """Return whole numbers n and steps s with x = n s, but for rounding to nearest: |n| <= 2^bits.

    Args:
        x: float64, finite.
        bits: of the whole numbers.
        axis: the axes that share a step; None for one step. The others keep their own.
    """
    largest = np.max(np.abs(x), axis=axis, keepdims=True, initial=0.0)
    exponent = np.frexp(np.where(largest > 0, largest, 1.0))[1]
    step = np.ldexp(1.0, exponent - bits)
    return np.rint(x / step), step


def exact_product(rows: Doubles, weights: Doubles) -> Doubles:
    """Return rows [G, N, K] times weights [G, K, C], float64[G, N, C], the same on every machine.

    Each row and each column of weights is put on a grid of (53 - log2 K) / 2 bits first: an error of about 2^-20 of the
    largest number in it.
    """
    bits = (EXACT_BITS - max(1, math.ceil(math.log2(max(2, rows.shape[2]))))) // 2
    a, row_steps = on_grid(rows, bits, (2,))
    b, column_steps = on_grid(weights, bits, (1,))
    return np.asarray((a @ b) * row_steps * column_steps)
