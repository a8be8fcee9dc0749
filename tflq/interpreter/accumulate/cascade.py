"""Sums of rows of float32 in the order of PyTorch's own loop on processors.

A row is read as groups of 8 numbers, one for each lane of a vector. Four vectors are added side by side: vector v goes
to chain v mod 4. A chain adds its vectors to a first total; after every 2^p of them that total moves into a second,
after every 2^p moves the second into a third and so on, four in all, p = max(4, ceil(log2 n) div 4) for n vectors a
chain. At the end each chain adds its totals, first to last; vectors behind the last whole group of four go to the first
chain; then the chains are added, and at last, to what is left of the row in order, the lanes. Rows of fewer than 8
numbers are added likewise, number by number in place of vectors.

The lanes are 8 whatever the processor has: PyTorch compiles this loop for AVX2 at most. With several threads PyTorch
cuts a single row of more than 32767 numbers in parts; here it stays whole, as with OMP_NUM_THREADS=1.

Source: PyTorch 2.13, aten/src/ATen/native/cpu/SumKernel.cpp, whose sums these are
(tests/interpreter/aipu/test_float_sums.py).
"""

from __future__ import annotations

import numpy as np

from tflq.arrays import Singles

_LANES = 8
_CHAINS = 4
_LEVELS = 4
_LEAST_POWER = 4


def cascade_sums(rows: Singles) -> Singles:
    """Return the sum of each row: float32[O, K] -> float32[O], every addition rounded to float32."""
    outputs, size = rows.shape
    columns = np.ascontiguousarray(rows.T)
    if size < _LANES:
        return _chained(columns)
    whole = size // _LANES * _LANES
    lanes = _chained(columns[:whole].reshape(-1, _LANES, outputs))
    total = np.zeros(outputs, np.float32)
    for part in (*columns[whole:], *lanes):
        total += part
    return total


def _chained(vectors: Singles) -> Singles:
    """Return the sum of vectors [V, ...] by four chains."""
    length = len(vectors) // _CHAINS
    chains = _levelled(vectors[: length * _CHAINS].reshape(length, _CHAINS, *vectors.shape[1:]))
    total: Singles = chains[0]
    for part in (*vectors[length * _CHAINS :], *chains[1:]):
        total = total + part
    return total


def _levelled(vectors: Singles) -> Singles:
    """Return the sum of vectors [V, ...] by four totals, each of which is emptied into the next."""
    size = len(vectors)
    power = max(_LEAST_POWER, (max(size, 1) - 1).bit_length() // _LEVELS)
    totals = np.zeros((_LEVELS, *vectors.shape[1:]), np.float32)
    for count, vector in enumerate(vectors, 1):
        totals[0] += vector
        for level in range(1, _LEVELS):
            if count % (1 << level * power):
                break
            totals[level] += totals[level - 1]
            totals[level - 1] = 0
    total: Singles = totals[0]
    for part in totals[1:]:
        total = total + part
    return total
