"""MAX_POOL_2D against TFLite."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.draw import QUANTISED, activations, kernel_settings, quantisations, seeds
from tests.support.layers import geometries, pool_graph
from tests.support.single_op import check_against_oracle, random_inputs


@pytest.mark.parametrize("dtype", QUANTISED)
@kernel_settings
@given(data=st.data(), where=geometries(1), channels=st.integers(1, 5), activation=activations, seed=seeds)
def test_against_tflite(oracle, dtype, data, where, channels, activation, seed):
    graph = pool_graph("max_pool_2d", dtype, data.draw(quantisations(dtype)), where, channels, activation)
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(seed), graph, 5))
