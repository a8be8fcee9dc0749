"""AVERAGE_POOL_2D, L2_POOL_2D and MAX_POOL_2D of float32 against TFLite."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.draw import activations, kernel_settings, seeds
from tests.support.layers import Geometry, geometries, pool_graph
from tests.support.single_op import check_against_oracle, random_inputs
from tests.support.types import FLOAT32

POOLS = ["average_pool_2d", "l2_pool_2d", "max_pool_2d"]


@pytest.mark.parametrize("operator", POOLS)
@kernel_settings
@given(where=geometries(1), channels=st.integers(1, 5), activation=activations, seed=seeds)
def test_against_tflite(oracle, operator, where, channels, activation, seed):
    graph = pool_graph(operator, FLOAT32, None, where, channels, activation)
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(seed), graph, 5))


@pytest.mark.parametrize("operator", POOLS)
@pytest.mark.parametrize("activation", ["none", "relu", "relu6"])
def test_infinities_nan_and_signed_zeros(oracle, operator, activation):
    where = Geometry((5, 5), (2, 2), (1, 1), (1, 1), "same")
    graph = pool_graph(operator, FLOAT32, None, where, 3, activation)
    values = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 3e38, -3e38, 1e-42, 1.0], np.float32)
    x = np.random.default_rng(0).choice(values, (100, 1, 5, 5, 3))
    check_against_oracle(oracle, graph, [x])
