"""GATHER against TFLite."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.draw import shapes
from tests.support.nodes import check, check_refused, few, fixed, sampled, values
from tflq.errors import UnsupportedError
from tflq.graph import DType

TYPES = [
    DType.FLOAT32, DType.FLOAT16, DType.UINT8, DType.INT4, DType.INT8, DType.INT16, DType.INT32, DType.INT64,
    DType.BOOL,
]  # fmt: skip


def operand(value, is_sampled, **kinds):
    return sampled(value, **kinds) if is_sampled else fixed(value[0], **kinds)


@pytest.mark.parametrize("index", [np.int16, np.int32, np.int64])
@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: t.value)
def test_every_type(oracle, dtype, index):
    x = sampled(values(0, (3, 4, 3, 2), dtype), dtype=dtype)
    check(oracle, "gather", [x, fixed(np.array([[3, 0], [3, 1]], index))], [dtype], axis=0)


def test_strings(oracle):
    x = sampled(values(0, (3, 4), DType.STRING))
    check(oracle, "gather", [x, sampled(np.array([[3, 0], [3, 1], [2, 2]], np.int32))], [DType.STRING])


@pytest.mark.parametrize("which", [(True, False), (False, True), (True, True)])
@few
@given(data=st.data(), shape=shapes(4, 4), extra=shapes(2, 3), seed=st.integers(0, 99))
def test_axes_and_batches(oracle, which, data, shape, extra, seed):
    axis = data.draw(st.integers(0, len(shape) - 1))
    batches = data.draw(st.integers(0, axis))
    indices = values(seed, (3, *shape[:batches], *extra), DType.INT32) % shape[axis]
    x = values(seed, (3, *shape), DType.INT8)
    operands = [operand(x, which[0]), operand(indices, which[1])]
    negative = data.draw(st.booleans())
    axis -= len(shape) * negative
    check(oracle, "gather", operands, [DType.INT8], axis=axis, batch_dims=batches)


def test_scalar_index(oracle):
    x = sampled(values(0, (3, 4, 2), DType.INT8))
    check(oracle, "gather", [x, sampled(np.array([1, 3, 0], np.int32))], [DType.INT8], axis=0)


def test_refused(oracle):
    x = values(0, (1, 4, 2), DType.INT8)
    check_refused(oracle, "gather", [sampled(x), fixed([4])], [DType.INT8], r"at \(0,\) is 4; axis 0 .* 0..3")
    check_refused(oracle, "gather", [sampled(x), fixed([-1])], [DType.INT8], "is -1", axis=1)
    check_refused(oracle, "gather", [sampled(x), fixed([0])], [DType.INT8], "out of range", axis=2)
    check_refused(oracle, "gather", [sampled(x), fixed([0])], [DType.INT8], "batch_dims", axis=0, batch_dims=1)
    check_refused(oracle, "gather", [sampled(x), fixed([0])], [DType.INT8], "differ", axis=1, batch_dims=1)
    strings = sampled(values(0, (1, 4, 2), DType.STRING))
    check_refused(oracle, "gather", [strings, fixed([0])], [DType.STRING], "vector")


def test_half_bytes_are_refused(oracle):
    x = sampled(values(0, (1, 4, 3), DType.INT4), dtype=DType.INT4)
    with pytest.raises(UnsupportedError, match="whole bytes"):
        check(oracle, "gather", [x, fixed([0])], [DType.INT4])
