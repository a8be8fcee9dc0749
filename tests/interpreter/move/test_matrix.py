"""MATRIX_DIAG, MATRIX_SET_DIAG, DYNAMIC_UPDATE_SLICE and DILATE against TFLite."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.interpreter.move.test_gather import operand
from tests.interpreter.move.test_slice import TYPES
from tests.support.draw import kernel_settings, shapes
from tests.support.nodes import check, check_refused, few, fixed, sampled, values
from tflq.errors import GraphError
from tflq.graph import DType

MATRICES = [DType.UINT8, DType.INT8, DType.INT16, DType.INT32, DType.INT64, DType.FLOAT32, DType.UINT32]
WHICH = [(True, False), (False, True), (True, True)]


@pytest.mark.parametrize("dtype", MATRICES, ids=lambda t: t.value)
@pytest.mark.parametrize("shape", [(1,), (3,), (2, 3, 4)])
def test_diagonal(oracle, dtype, shape):
    check(oracle, "matrix_diag", [sampled(values(0, (2, *shape), dtype))], [dtype])


@pytest.mark.parametrize("dtype", MATRICES, ids=lambda t: t.value)
@pytest.mark.parametrize("which", WHICH)
@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 2), (2, 2, 3)])
def test_set_diagonal(oracle, dtype, which, shape):
    diagonal = values(1, (2, *shape[:-2], min(shape[-2:])), dtype)
    operands = [operand(values(0, (2, *shape), dtype), which[0]), operand(diagonal, which[1])]
    check(oracle, "matrix_set_diag", operands, [dtype])


def test_a_diagonal_that_does_not_fit_is_refused(oracle):
    operands = [sampled(values(0, (1, 3, 3), DType.INT8)), sampled(values(0, (1, 2), DType.INT8))]
    with pytest.raises(GraphError, match="does not fit"):
        check(oracle, "matrix_set_diag", operands, [DType.INT8])
    check_refused(oracle, "matrix_set_diag", [operands[1], operands[1]], [DType.INT8], "does not fit")


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [*TYPES, DType.INT4], ids=lambda t: t.value)
def test_update_every_type(oracle, dtype, index):
    operands = [
        sampled(values(0, (3, 4, 5), dtype), dtype=dtype),
        sampled(values(1, (3, 2, 3), dtype), dtype=dtype),
        sampled(np.array([[1, 2], [9, -4], [0, 1]], index)),
    ]
    check(oracle, "dynamic_update_slice", operands, [dtype])


@pytest.mark.parametrize(
    "which", [(True, False, False), (False, True, False), (False, False, True), (True, True, True)]
)
@few
@given(data=st.data(), shape=shapes(4, 4), seed=st.integers(0, 99))
def test_update(oracle, which, data, shape, seed):
    box = [data.draw(st.integers(1, n)) for n in shape]
    start = values(seed, (2, len(shape)), DType.INT32) % 8 - 2
    arrays = (values(seed, (2, *shape), DType.INT8), values(seed + 1, (2, *box), DType.INT8), start)
    operands = [operand(array, w) for array, w in zip(arrays, which, strict=True)]
    check(oracle, "dynamic_update_slice", operands, [DType.INT8])


@pytest.mark.parametrize(("box", "start"), [((3, 2), [0, 0]), ((2,), [0, 0]), ((2, 2), [0])])
def test_update_refused(oracle, box, start):
    operands = [sampled(values(0, (1, 2, 4), DType.INT8)), fixed(values(0, box, DType.INT8)), fixed(start)]
    check_refused(oracle, "dynamic_update_slice", operands, [DType.INT8], "does not fit")


@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: t.value)
def test_dilate_every_type(oracle, dtype):
    operands = [sampled(values(0, (2, 3, 2), dtype)), fixed([2, 3]), sampled(values(1, (2,), dtype))]
    check(oracle, "dilate", operands, [dtype])


@kernel_settings
@given(data=st.data(), shape=shapes(4, 4), seed=st.integers(0, 99))
def test_dilate(oracle, data, shape, seed):
    steps = [data.draw(st.integers(1, 3)) for _ in shape]
    operands = [sampled(values(seed, (2, *shape), DType.INT16)), fixed(steps), fixed(np.int16(-7))]
    check(oracle, "dilate", operands, [DType.INT16])


@pytest.mark.parametrize("steps", [[2], [2, 0]])
def test_dilate_refused(oracle, steps):
    """TFLite may refuse these, or write outside the tensor."""
    operands = [sampled(values(0, (1, 2, 4), DType.INT8)), fixed(steps), fixed(np.int8(0))]
    with pytest.raises(GraphError, match="each axis"):
        check(oracle, "dilate", operands, [DType.INT8])
