"""Products by fused multiply-add against rational arithmetic, which rounds each step once."""

from __future__ import annotations

from fractions import Fraction
from math import frexp

import numpy as np
import pytest

from tflq.interpreter.accumulate.products import fused_products


def nearest_single(exact: Fraction) -> np.float32:
    """Round a rational number to float32 once, ties to even; it lies among the normal numbers."""
    if not exact:
        return np.float32(0)
    step = Fraction(2) ** (frexp(float(exact))[1] - 24)
    return np.float32(float(round(exact / step) * step))


def fused(x: np.ndarray, y: np.ndarray) -> np.float32:
    total = np.float32(0)
    for a, b in zip(x, y, strict=True):
        total = nearest_single(Fraction(float(a)) * Fraction(float(b)) + Fraction(float(total)))
    return total


@pytest.mark.parametrize("seed", range(3))
def test_each_step_is_rounded_once(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = (rng.standard_normal((2, 3, 20)) * 2.0 ** rng.integers(-20, 20, (2, 3, 20))).astype(np.float32)
    y = (rng.standard_normal((20, 4)) * 2.0 ** rng.integers(-20, 20, (20, 4))).astype(np.float32)
    found = fused_products(x, y)
    assert found.tolist() == [[[float(fused(row, y[:, b])) for b in range(4)] for row in stack] for stack in x]


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_sum_beside_a_tie_is_not_rounded_twice(sign: float) -> None:
    """1 + 2^-23 + 2^-24 - 2^-70: float64 rounds it to a tie of float32, which would go up."""
    x = np.array([[1 + 2.0**-23, 2.0**-24 * (1 + 2.0**-23)]], np.float32) * np.float32(sign)
    y = np.array([[1.0], [1 - 2.0**-23]], np.float32)
    assert fused_products(x, y)[0, 0] == fused(x[0], y[:, 0]) == sign * (1 + 2.0**-23)


def test_infinities_stay() -> None:
    x = np.array([[np.inf, 1.0], [3e38, 3e38]], np.float32)
    y = np.array([[1.0], [10.0]], np.float32)
    assert fused_products(x, y)[:, 0].tolist() == [np.inf, np.inf]
