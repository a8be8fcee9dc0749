"""UNPACK against TFLite."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.draw import affine, kernel_settings, shapes
from tests.support.nodes import Result, check, check_refused, sampled, values
from tflq.graph import DType

TYPES = [DType.FLOAT32, DType.FLOAT16, DType.UINT8, DType.INT8, DType.INT16, DType.INT32, DType.BOOL]


@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: t.value)
def test_every_type(oracle, dtype):
    check(oracle, "unpack", [sampled(values(0, (3, 2, 3), dtype))], [dtype] * 3, num=3, axis=-1)


@kernel_settings
@given(data=st.data(), shape=shapes(4, 3), seed=st.integers(0, 99))
def test_every_axis(oracle, data, shape, seed):
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    q = affine(DType.INT8, 0.5, 3)
    x = sampled(values(seed, (2, *shape), DType.INT8), q)
    check(oracle, "unpack", [x], [Result(DType.INT8, q)] * shape[axis], num=shape[axis], axis=axis)


def test_refused(oracle):
    x = values(0, (1, 2), DType.INT8)
    check_refused(oracle, "unpack", [sampled(x)], [DType.INT8] * 3, "length", num=3)
    check_refused(oracle, "unpack", [sampled(x)], [DType.INT8] * 2, "out of range", num=2, axis=1)
    operand, result = sampled(x, affine(DType.INT8, 1)), Result(DType.INT8, affine(DType.INT8, 2))
    check_refused(oracle, "unpack", [operand], [result] * 2, "scale", num=2)
    check_refused(oracle, "unpack", [sampled(values(0, (1, 2), DType.INT64))], [DType.INT64] * 2, "takes", num=2)
