"""The exponential of the Optimizer's library, with which it makes tables of Exp and Softmax.

Source: docs/rules/aipu/values.md#tables.

It is off by an ulp from the correctly rounded one for some arguments, which shows in an entry of a table now and then.

GELU with which the Optimizer makes tables: x / 2 * (1 + erf(x / sqrt(2))) by polynomials
(docs/rules/aipu/values.md#tables).

PyTorch leaves it to oneDNN, which on processors with AVX-512 takes one polynomial of degree 5 a quarter of a binade of
abs(x). Its values are up to a few ulps from the correctly rounded ones.

Source: oneDNN, cpu/x64/injectors/jit_uni_eltwise_injector.cpp, gelu_erf_minimax; equal to the tool's on 2^18 arguments.
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
        result = high + fused(high, fused(square, np.float32(0.5), r), low)
    else:
        bent = fused(r, _CURVATURE[0], _CURVATURE[1])
        result = fused(high, fused(square, bent, (r + (low / high).astype(np.float32)).astype(np.float32)), high)
    powers: Singles = np.ldexp(result.astype(np.float32), whole)
    return powers


_COEFFICIENTS = np.array(
    [
        (1.5188366e-08, 7.978839e-01, 1.0841714e-05, -1.3307738e-01, 4.5889345e-04, 1.8966824e-02),
        (6.0441465e-08, 7.978825e-01, 2.896764e-05, -1.3319246e-01, 8.250156e-04, 1.8499883e-02),
        (1.9580071e-07, 7.978789e-01, 6.682378e-05, -1.3339315e-01, 1.3578596e-03, 1.793304e-02),
        (5.7655126e-07, 7.9787034e-01, 1.4431536e-04, -1.3374342e-01, 2.1505188e-03, 1.7214557e-02),
        (1.8136789e-06, 7.978466e-01, 3.2647466e-04, -1.344436e-01, 3.4977621e-03, 1.617638e-02),
        (7.1081054e-06, 7.977628e-01, 8.582302e-04, -1.3613439e-01, 6.191868e-03, 1.4455351e-02),
        (2.2010752e-05, 7.9756546e-01, 1.9052438e-03, -1.3891616e-01, 9.893196e-03, 1.2482236e-02),
        (5.5225635e-05, 7.971865e-01, 3.6366323e-03, -1.4287555e-01, 1.4425337e-02, 1.0404875e-02),
        (1.831175e-04, 7.959481e-01, 8.441632e-03, -1.5221408e-01, 2.3517137e-02, 6.857343e-03),
        (6.498413e-04, 7.922447e-01, 2.0222925e-02, -1.709968e-01, 3.852472e-02, 2.0495458e-03),
        (1.7345067e-03, 7.850465e-01, 3.9360855e-02, -1.9647883e-01, 5.551665e-02, -2.4900034e-03),
        (3.7866202e-03, 7.733578e-01, 6.602445e-02, -2.269277e-01, 7.292371e-02, -6.475404e-03),
        (8.343051e-03, 7.511906e-01, 1.0923457e-01, -2.6911446e-01, 9.355366e-02, -1.0517931e-02),
        (1.27789555e-02, 7.32789e-01, 1.3979976e-01, -2.9452354e-01, 1.0412485e-01, -1.2278704e-02),
        (-3.176821e-03, 7.846672e-01, 7.2266184e-02, -2.5052387e-01, 8.9776866e-02, -1.0405218e-02),
        (-6.91192e-02, 9.714677e-01, -1.396405e-01, -1.301916e-01, 5.557131e-02, -6.5113325e-03),
        (-2.7097204e-01, 1.4611516e00, -6.155817e-01, 1.0148359e-01, -9.112102e-04, -9.935636e-04),
        (-5.472661e-01, 2.0251584e00, -1.0770063e00, 2.905895e-01, -3.973237e-02, 2.1998081e-03),
        (-3.9980435e-01, 1.790736e00, -9.281096e-01, 2.4336384e-01, -3.2254163e-02, 1.72694e-03),
        (1.4787646e-01, 1.0093725e00, -4.816873e-01, 1.1568559e-01, -1.3974587e-02, 6.788905e-04),
        (7.7755123e-01, 2.3098189e-01, -9.61774e-02, 2.0067886e-02, -2.0977375e-03, 8.7863686e-05),
        (9.794183e-01, 1.867352e-02, -6.786839e-03, 1.2350094e-03, -1.12510286e-04, 4.1047288e-06),
        (1e00, 0, 0, 0, 0, 0),
    ],
    np.float32,
)
"""Of erf(a / sqrt(2)), constant first, for each interval of a; the last is 1."""

_FIRST = 0x3E000001
"""Bits of the first a behind which an interval ends each quarter of a binade."""
_QUARTER = 21
"""Bits of a below the first two of its mantissa."""
_LAST = np.float32(5.542594)


def gelu_of_vectors(x: Singles) -> Singles:
    """Return GELU of float32: E = sum of c_k a^k by fused steps, a = abs(x); x * (1 + sign(x) E) * 0.5."""
    a = np.abs(x)
    last = len(_COEFFICIENTS) - 1
    place = np.clip((a.view(np.int32) - _FIRST) >> _QUARTER, 0, last)
    chosen = _COEFFICIENTS[np.where(a > _LAST, last, place)]
    share = chosen[..., -1]
    for degree in reversed(range(_COEFFICIENTS.shape[1] - 1)):
        share = (share.astype(np.float64) * a + chosen[..., degree]).astype(np.float32)
    result: Singles = x * (np.copysign(share, x) + np.float32(1)) * np.float32(0.5)
    return result
