"""TOPK_V2 against TFLite."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.draw import kernel_settings, shapes
from tests.support.nodes import check, check_refused, fixed, sampled, values
from tflq.graph import DType

TYPES = [DType.FLOAT32, DType.UINT8, DType.INT8, DType.INT16, DType.INT32, DType.INT64]


@pytest.mark.parametrize("places", [DType.INT16, DType.INT32], ids=lambda t: t.value)
@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: t.value)
def test_every_type(oracle, dtype, places):
    operands = [sampled(values(0, (3, 4, 9), dtype)), fixed(np.array(5, places.storage))]
    check(oracle, "topk_v2", operands, [dtype, places])


@kernel_settings
@given(data=st.data(), shape=shapes(3, 9), seed=st.integers(0, 99))
def test_equal_elements(oracle, data, shape, seed):
    k = data.draw(st.integers(0, shape[-1]))
    x = values(seed, (3, *shape), DType.INT8) % 3 - 1
    check(oracle, "topk_v2", [sampled(x), fixed(k)], [DType.INT8, DType.INT32])


def test_extremes(oracle):
    x = np.array([[-128, 127, 0, -128, 127]], np.int8)
    check(oracle, "topk_v2", [sampled(x), fixed(5)], [DType.INT8, DType.INT32])
    x = np.array([[-(2**63), 2**63 - 1, 0, -1]], np.int64)
    check(oracle, "topk_v2", [sampled(x), fixed(4)], [DType.INT64, DType.INT32])
    x = np.array([[-0.0, np.inf, 0.0, -np.inf, 1e-45, -0.0]], np.float32)
    check(oracle, "topk_v2", [sampled(x), fixed(6)], [DType.FLOAT32, DType.INT32])


def test_refused(oracle):
    x = sampled(values(0, (1, 2, 3), DType.INT8))
    check_refused(oracle, "topk_v2", [x, fixed(4)], [DType.INT8, DType.INT32], "k is 4")
    x = sampled(values(0, (1, 3), DType.BOOL))
    check_refused(oracle, "topk_v2", [x, fixed(1)], [DType.BOOL, DType.INT32], "takes")
