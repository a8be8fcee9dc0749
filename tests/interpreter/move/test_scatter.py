"""SCATTER_ND and SPARSE_TO_DENSE against TFLite."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.interpreter.move.test_gather import operand
from tests.support.draw import shapes
from tests.support.nodes import check, check_refused, few, fixed, long, sampled, values
from tflq.graph import DType

SCATTERED = [DType.FLOAT32, DType.UINT8, DType.BOOL, DType.INT8, DType.INT64, DType.INT32]
SPARSE = [DType.FLOAT32, DType.INT32, DType.INT64, DType.INT8, DType.UINT8]
WHICH = [(True, False), (False, True), (True, True)]


@pytest.mark.parametrize("dtype", SCATTERED, ids=lambda t: t.value)
def test_every_type(oracle, dtype):
    operands = [fixed([[1], [1], [0], [3]]), sampled(values(0, (3, 4, 2, 3), dtype)), fixed([5, 2, 3])]
    check(oracle, "scatter_nd", operands, [dtype])


@pytest.mark.parametrize("which", WHICH)
@few
@given(data=st.data(), shape=shapes(4, 3), outer=shapes(2, 4), seed=st.integers(0, 99))
def test_coordinates(oracle, which, data, shape, outer, seed):
    axes = data.draw(st.integers(1, len(shape)))
    indices = values(seed, (3, *outer, axes), DType.INT32) % np.array(shape[:axes], np.int32)
    updates = values(seed, (3, *outer, *shape[axes:]), DType.INT8)
    operands = [operand(indices, which[0]), operand(updates, which[1]), fixed(list(shape))]
    check(oracle, "scatter_nd", operands, [DType.INT8])


def test_refused(oracle):
    updates, shape = sampled(values(0, (1, 2), DType.INT8)), fixed([4])
    check_refused(oracle, "scatter_nd", [fixed([[0], [4]]), updates, shape], [DType.INT8], "axis 0 .* 0..3")
    check_refused(oracle, "scatter_nd", [fixed([[0], [-1]]), updates, shape], [DType.INT8], "is -1")
    check_refused(oracle, "scatter_nd", [fixed([[0], [1], [2]]), updates, shape], [DType.INT8], "do not fit")
    check_refused(oracle, "scatter_nd", [fixed([[0, 0], [1, 1]]), updates, shape], [DType.INT8], "do not fit")
    wide = sampled(values(0, (1, 2), DType.INT16))
    check_refused(oracle, "scatter_nd", [fixed([[0], [1]]), wide, shape], [DType.INT16], "takes")


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", SPARSE, ids=lambda t: t.value)
def test_every_sparse_type(oracle, dtype, index):
    indices = fixed(np.array([[1, 2], [0, 0], [1, 2], [3, 1]], index))
    operands = [indices, long([4, 5]), sampled(values(0, (3, 4), dtype)), fixed(values(1, (), dtype))]
    check(oracle, "sparse_to_dense", operands, [dtype])


@pytest.mark.parametrize("which", WHICH)
@few
@given(data=st.data(), shape=shapes(4, 4), count=st.integers(1, 5), seed=st.integers(0, 99))
def test_sparse_shapes(oracle, which, data, shape, count, seed):
    indices = values(seed, (3, count, len(shape)), DType.INT32) % np.array(shape, np.int32)
    if len(shape) == 1 and data.draw(st.booleans()):
        indices = indices[:, :, 0]
    given_values = values(seed, (3,) if data.draw(st.booleans()) else (3, count), DType.INT8)
    operands = [operand(indices, which[0]), fixed(list(shape)), operand(given_values, which[1]), fixed(np.int8(7))]
    check(oracle, "sparse_to_dense", operands, [DType.INT8])


def test_sparse_refused(oracle):
    numbers = [fixed([4]), sampled(values(0, (1, 2), DType.INT8)), fixed(np.int8(0))]
    check_refused(oracle, "sparse_to_dense", [fixed([0, 4]), *numbers], [DType.INT8], "0..3")
    check_refused(oracle, "sparse_to_dense", [fixed([0, 1, 2]), *numbers], [DType.INT8], "values")
    check_refused(oracle, "sparse_to_dense", [fixed([[0, 1]]), *numbers], [DType.INT8], "do not fit")
