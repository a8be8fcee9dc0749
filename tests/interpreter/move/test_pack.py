"""PACK against TFLite."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.draw import affine, kernel_settings, shapes
from tests.support.nodes import Result, check, check_refused, fixed, sampled, values
from tflq.graph import DType

TYPES = [DType.FLOAT32, DType.UINT8, DType.UINT32, DType.INT8, DType.INT16, DType.INT32, DType.INT64]


@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: t.value)
def test_every_type(oracle, dtype):
    operands = [sampled(values(i, (3, 2, 3), dtype)) for i in range(2)] + [fixed(values(2, (2, 3), dtype))]
    check(oracle, "pack", operands, [dtype], values_count=3, axis=1)


@kernel_settings
@given(data=st.data(), shape=shapes(4, 3), seed=st.integers(0, 99))
def test_every_axis(oracle, data, shape, seed):
    axis = data.draw(st.integers(-len(shape) - 1, len(shape)))
    q = affine(DType.INT8, 0.5, 3)
    operands = [sampled(values(seed + i, (2, *shape), DType.INT8), q) for i in range(2)]
    check(oracle, "pack", operands, [Result(DType.INT8, q)], values_count=2, axis=axis)


def test_scalars(oracle):
    operands = [sampled(np.arange(3, dtype=np.int32)), fixed(7)]
    check(oracle, "pack", operands, [DType.INT32], values_count=2, axis=0)


def test_refused(oracle):
    x, y = (values(i, (1, 2), DType.INT8) for i in range(2))
    results = [Result(DType.INT8, affine(DType.INT8, 1))]
    operands = [sampled(x, affine(DType.INT8, 1)), sampled(y, affine(DType.INT8, 2))]
    check_refused(oracle, "pack", operands, results, "scale", values_count=2)
    operands = [sampled(x), sampled(values(0, (1, 3), DType.INT8))]
    check_refused(oracle, "pack", operands, [DType.INT8], "shapes", values_count=2)
    check_refused(oracle, "pack", [sampled(x)] * 2, [DType.INT8], "out of range", values_count=2, axis=2)
    check_refused(oracle, "pack", [sampled(x)] * 2, [DType.INT8], "values_count", values_count=3)
