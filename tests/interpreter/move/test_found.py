"""WHERE and UNIQUE, whose result's shape depends on values, against TFLite."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.draw import shapes
from tests.support.nodes import check, check_refused, few, sampled, values
from tflq.graph import DType

CONDITIONS = [DType.BOOL, DType.FLOAT32, DType.INT64, DType.INT32, DType.INT8, DType.UINT8, DType.UINT32]
ELEMENTS = [DType.FLOAT32, DType.UINT8, DType.INT8, DType.INT16, DType.INT32, DType.INT64]


@pytest.mark.parametrize("dtype", CONDITIONS, ids=lambda t: t.value)
@few
@given(shape=shapes(4, 4), seed=st.integers(0, 99))
def test_where(oracle, dtype, shape, seed):
    zero = values(seed, (1, *shape), DType.INT32) % 3 == 0
    check(
        oracle,
        "where",
        [sampled(np.where(zero, np.zeros((), dtype.storage), values(seed, (1, *shape), dtype)))],
        [DType.INT64],
    )


def test_special_floats(oracle):
    x = np.array([[np.nan, -0.0, 1e-45, np.inf]], np.float32)
    check(oracle, "where", [sampled(x)], [DType.INT64])


def test_where_refused(oracle):
    check_refused(oracle, "where", [sampled(np.array([True]))], [DType.INT64], "scalar")
    check_refused(oracle, "where", [sampled(values(0, (1, 2), DType.INT16))], [DType.INT64], "takes")


@pytest.mark.parametrize("places", [DType.INT32, DType.INT64], ids=lambda t: t.value)
@pytest.mark.parametrize("dtype", ELEMENTS, ids=lambda t: t.value)
@few
@given(count=st.integers(1, 12), seed=st.integers(0, 99))
def test_unique(oracle, dtype, places, count, seed):
    x = (values(seed, (1, count), DType.INT32) % 5 - (2 if dtype.is_signed else 0)).astype(dtype.storage)
    check(oracle, "unique", [sampled(x)], [dtype, places], idx_out_type=places.value)


def test_zeros_are_equal(oracle):
    check(oracle, "unique", [sampled(np.array([[-0.0, 1, 0.0, 1]], np.float32))], [DType.FLOAT32, DType.INT32])


def test_unique_refused(oracle):
    results = [DType.INT8, DType.INT32]
    check_refused(oracle, "unique", [sampled(values(0, (1, 2, 2), DType.INT8))], results, "vector")
    check_refused(oracle, "unique", [sampled(values(0, (1, 2), DType.INT8))], results, "takes", idx_out_type="int64")
