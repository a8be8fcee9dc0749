"""ONE_HOT against TFLite."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.draw import kernel_settings, shapes
from tests.support.nodes import check, check_refused, fixed, sampled, values
from tflq.graph import DType

TYPES = [DType.FLOAT32, DType.INT32, DType.INT64, DType.INT8, DType.UINT8, DType.BOOL]


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: t.value)
def test_every_type(oracle, dtype, index):
    indices = sampled(np.array([[0, 2, 5], [-1, 1, 0]], index))
    operands = [indices, fixed(4), sampled(values(0, (2,), dtype)), fixed(values(1, (), dtype))]
    check(oracle, "one_hot", operands, [dtype], axis=-1)


@kernel_settings
@given(data=st.data(), shape=shapes(3, 4), depth=st.integers(0, 5), seed=st.integers(0, 99))
def test_axes(oracle, data, shape, depth, seed):
    axis = data.draw(st.integers(-1, len(shape)))
    indices = sampled(values(seed, (2, *shape), DType.INT32) % 6 - 1)
    operands = [indices, fixed(depth), fixed(np.float32(2)), fixed(np.float32(-1))]
    check(oracle, "one_hot", operands, [DType.FLOAT32], axis=axis)


def test_wide_indices_count_by_their_low_half(oracle):
    indices = sampled(np.array([[(1 << 32) + 2, 1 << 40]], np.int64))
    check(oracle, "one_hot", [indices, fixed(3), fixed(1), fixed(0)], [DType.INT32], axis=-1)


@pytest.mark.parametrize(("depth", "axis", "message"), [(-1, 0, "0 or more"), (3, 2, "out of range")])
def test_refused(oracle, depth, axis, message):
    operands = [sampled(np.array([[1, 2]], np.int32)), fixed(depth), fixed(1), fixed(0)]
    check_refused(oracle, "one_hot", operands, [DType.INT32], message, axis=axis)
