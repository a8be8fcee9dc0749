"""GAP9's fixed-point functions: NNTool's own results on 250 172 arguments, and the real functions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.support.data import data_path
from tflq.graph import Array
from tflq.interpreter.numerics import q15

FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "exp": q15.exp_q15,
    "sqrt": q15.sqrt_q15,
    "rsqrt": q15.rsqrt_q16,
    "log": q15.log_q15,
    "square": q15.square_q15,
    "sin": q15.sin_q15,
    "cos": q15.cos_q15,
    "sigmoid": q15.sigmoid_q15,
    "tanh": q15.tanh_q15,
    **{f"pow{q}": lambda x, q=q: q15.pow_q15(x, q, q15.least_logarithm(q)) for q in (16384, 9830, 3277, 29491)},
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_equals_the_tool(name: str) -> None:
    with np.load(data_path("cases", "gap9_expressions", "primitives.npz")) as vectors:
        x, y = vectors[f"{name}/x"].astype(np.int64), vectors[f"{name}/y"]
    assert len(x) > 3000
    assert np.count_nonzero(FUNCTIONS[name](x) != y) == 0


@pytest.mark.parametrize(("exponent", "wrong"), [(3277, 0), (9830, 1000), (16384, 4000), (29491, 4000)])
def test_powers_whose_logarithms_are_not_cut_are_near_everywhere(exponent: int, wrong: int) -> None:
    x = np.unique(np.exp(np.random.default_rng(0).uniform(0, np.log(1 << 15), 4000)).astype(np.int64))
    real = (x / 2**15) ** (exponent / 2**15) * 2**15
    assert np.abs(q15.pow_q15(x, exponent) - real).max() < 12
    assert np.abs(q15.pow_q15(x, exponent, q15.least_logarithm(exponent)) - real).max() >= wrong


def test_zero_counts_as_the_smallest_argument_of_an_inverse_root() -> None:
    assert q15.rsqrt_q16(np.array([0])) == q15.rsqrt_q16(np.array([1])) == 1 << 24
