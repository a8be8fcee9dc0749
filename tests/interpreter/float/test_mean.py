"""float32 MEAN against TFLite: the same sum in the same order, so the same bits."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.support.draw import kernel_settings, seeds, shapes, with_constants
from tests.support.single_op import check_against_oracle
from tests.support.types import FLOAT32


@kernel_settings
@given(data=st.data(), shape=shapes(5, 9), keep_dims=st.booleans(), seed=seeds)
def test_any_axes(oracle, data, shape, keep_dims, seed):
    axes = data.draw(st.lists(st.integers(-len(shape), len(shape) - 1), min_size=1, max_size=3))
    resolved = {axis % len(shape) for axis in axes}
    after = [1 if i in resolved else n for i, n in enumerate(shape) if keep_dims or i not in resolved]
    graph = with_constants("mean", shape, after, [np.array(axes, np.int32)], FLOAT32, keep_dims=keep_dims)
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(6, *shape)) * 10.0 ** rng.uniform(-4, 4, (6, *shape))
    check_against_oracle(oracle, graph, [values.astype(np.float32)])


def test_signed_zeros_and_infinities(oracle):
    graph = with_constants("mean", (2, 2), (2,), [np.array([0], np.int32)], FLOAT32, keep_dims=False)
    values = np.array([[[-0.0, np.inf], [-0.0, 1.0]], [[np.inf, 3e38], [-np.inf, 3e38]]], np.float32)
    check_against_oracle(oracle, graph, [values])
