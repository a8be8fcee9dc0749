"""Float functions of one tensor against TFLite: exact, or within the bounds of the table of known differences."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.draw import one_input
from tests.support.known import check_known
from tests.support.single_op import check_against_oracle
from tests.support.types import FLOAT32
from tflq.graph import DType

SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, 3.5, 1e-40, 3e38, -3e38]


def reals(dtype=FLOAT32, spread=1.0, size=20000):
    rng = np.random.default_rng(1)
    magnitude = rng.normal(size=size) * np.exp2(rng.integers(-12, 5, size)) * spread
    with np.errstate(over="ignore"):
        return np.concatenate([SPECIAL, magnitude]).astype(dtype.storage)[None]


def graph_of(operator, x, dtype=FLOAT32, **options):
    return one_input(operator, x.shape[1:], (dtype, None), (dtype, None), **options)


@pytest.mark.parametrize("operator", ["abs", "sqrt", "rsqrt"])
def test_exact(oracle, operator):
    x = reals()
    check_against_oracle(oracle, graph_of(operator, x), [x])


@pytest.mark.parametrize("operator", ["exp", "log"])
def test_libm(oracle, operator):
    x = reals()
    check_known(oracle, graph_of(operator, x), [x])


def test_elu(optimized_oracle):
    x = reals()
    check_known(optimized_oracle, graph_of("elu", x), [x])


@pytest.mark.parametrize("approximate", [False, True])
@pytest.mark.parametrize("dtype", [FLOAT32, DType.FLOAT16])
def test_gelu(oracle, approximate, dtype):
    x = reals(dtype, 0.2)
    check_known(oracle, graph_of("gelu", x, dtype, approximate=approximate), [x])


def test_l2_normalization_in_order(oracle):
    x = reals(size=20002)[:, 16:].reshape(20, 10, 100)
    x[0] = 0
    graph = one_input("l2_normalization", (10, 100), (FLOAT32, None), (FLOAT32, None))
    check_against_oracle(oracle, graph, [x])


def test_log_softmax(oracle):
    x = reals(size=20002)[:, 16:].reshape(20, 10, 100)
    graph = one_input("log_softmax", (10, 100), (FLOAT32, None), (FLOAT32, None))
    check_known(oracle, graph, [x])
