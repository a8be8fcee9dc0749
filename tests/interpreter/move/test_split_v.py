"""SPLIT_V against TFLite."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.draw import kernel_settings, shapes
from tests.support.nodes import check, check_refused, fixed, long, sampled, values
from tflq.graph import DType

TYPES = [DType.FLOAT32, DType.UINT8, DType.INT8, DType.INT16, DType.INT32, DType.INT64]


@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: t.value)
@pytest.mark.parametrize("sizes", [[2, 0, 4], [1, -1, 3], [-1, 6, 0]])
def test_every_type(oracle, dtype, sizes):
    x = sampled(values(0, (3, 2, 6, 2), dtype))
    check(oracle, "split_v", [x, long(sizes), fixed(-2)], [dtype] * 3, num_splits=3)


@kernel_settings
@given(data=st.data(), shape=shapes(4, 5), seed=st.integers(0, 99))
def test_every_axis(oracle, data, shape, seed):
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    cut = data.draw(st.integers(0, shape[axis]))
    x = sampled(values(seed, (2, *shape), DType.INT8))
    operands = [x, fixed([cut, shape[axis] - cut]), fixed([axis])]
    check(oracle, "split_v", operands, [DType.INT8] * 2, num_splits=2)


@pytest.mark.parametrize(("sizes", "axis"), [([1, 2], 1), ([-1, -1], 1), ([-1, 7], 1), ([2, 4], 3)])
def test_refused(oracle, sizes, axis):
    x = sampled(values(0, (1, 2, 6), DType.INT8))
    check_refused(oracle, "split_v", [x, fixed(sizes), fixed(axis)], [DType.INT8] * 2, num_splits=2)


def test_bool_is_refused(oracle):
    x = sampled(values(0, (1, 4), DType.BOOL))
    check_refused(oracle, "split_v", [x, fixed([2, 2]), fixed(0)], [DType.BOOL] * 2, "takes", num_splits=2)
