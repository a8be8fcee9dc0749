"""The exponential of the Optimizer's library, with which it makes tables of Exp and Softmax (docs/aipu.md, 4).

It is off by an ulp from the correctly rounded one for some arguments, which shows in an entry of a table now and then.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.arrays import Singles
from tflq.interpreter.accumulate.products import fused
from tflq.interpreter.kernels.aipu.float_sums import AMD, INTEL


@dataclass(frozen=True)
class _Parts:
    """2^(k / count) in two float32, high + low, and the step ln 2 / count likewise."""

    count: int
    bits: int

    @property
    def step(self) -> tuple[np.float32, np.float32]:
        exact = np.log(2) / self.count
        high = np.float32(np.floor(exact * 2**self.bits) / 2**self.bits)
        return high, np.float32(exact - float(high))

    @property
    def roots(self) -> tuple[Singles, Singles]:
        exact = 2.0 ** (np.arange(self.count) / self.count)
        high = exact.astype(np.float32)
        return high, (exact - high).astype(np.float32)


_PARTS = {AMD: _Parts(128, 19), INTEL: _Parts(32, 20)}
_CURVATURE = (np.float32(1 / 6), np.float32(0.5000147))
"""Of the polynomial between two of Intel's roots."""


def exponential_of_library(x: Singles, library: str) -> Singles:
    """Return the exponential of Exp and of Softmax's table; every step a fused product of float32.

    AMD: n = RNE(128 x / ln 2), r = x - n ln 2 / 128 in two steps, p = r + r^2 / 2; high + (low + high * p), high and
    low of 2^(n / 128). Equal to the tool's on 99.94 % of random arguments, the correctly rounded one on 99.0 %.

    INTEL: n = floor(32 x / ln 2), p = r + low / high + r^2 * (c + r / 6); high + high * p. Equal on 99.996 %, the
    correctly rounded one on 98.9 %.
    """
    parts = _PARTS[library]
    scaled = (x * np.float32(parts.count / np.log(2))).astype(np.float32)
    n = np.rint(scaled) if library == AMD else np.floor(scaled)
    r = fused(-n, parts.step[1], fused(-n, parts.step[0], x))
    whole = np.floor(n / parts.count).astype(np.int64)
    high, low = (part[n.astype(np.int64) - whole * parts.count] for part in parts.roots)
    square = (r * r).astype(np.float32)
    if library == AMD:
        found = high + fused(high, fused(square, np.float32(0.5), r), low)
    else:
        bent = fused(r, _CURVATURE[0], _CURVATURE[1])
        found = fused(high, fused(square, bent, (r + (low / high).astype(np.float32)).astype(np.float32)), high)
    powers: Singles = np.ldexp(found.astype(np.float32), whole)
    return powers
