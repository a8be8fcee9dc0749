"""SEGMENT_SUM and UNSORTED_SEGMENT_SUM, _PROD, _MAX, _MIN against TFLite."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.interpreter.move.test_gather import operand
from tests.support.draw import kernel_settings, shapes
from tests.support.nodes import check, check_refused, few, fixed, sampled, values
from tflq.graph import DType

NUMBERS = [DType.INT32, DType.FLOAT32]
OPERATORS = [f"unsorted_segment_{name}" for name in ("sum", "prod", "max", "min")]


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("dtype", NUMBERS, ids=lambda t: t.value)
@pytest.mark.parametrize("which", [(True, False), (False, True), (True, True)])
@few
@given(data=st.data(), shape=shapes(3, 4), seed=st.integers(0, 99))
def test_unsorted(oracle, operator, dtype, which, data, shape, seed):
    axes = data.draw(st.integers(0, len(shape)))
    count = data.draw(st.integers(1, 5))
    ids = values(seed, (2, *shape[:axes]), DType.INT32) % (count + 1) - 1
    operands = [operand(values(seed, (2, *shape), dtype), which[0]), operand(ids, which[1]), fixed(count)]
    check(oracle, operator, operands, [dtype])


@pytest.mark.parametrize("operator", OPERATORS)
def test_special_floats(oracle, operator):
    x = np.array([[np.nan, 1, -0.0, 0.0, np.inf, -np.inf, 0.0, -0.0]], np.float32)
    check(oracle, operator, [sampled(x), fixed([0, 0, 1, 1, 2, 2, 3, 3]), fixed([4])], [DType.FLOAT32])


def test_unsorted_refused(oracle):
    x = sampled(values(0, (1, 3), DType.INT32))
    check_refused(oracle, OPERATORS[0], [x, fixed([0, 1, 4]), fixed(4)], [DType.INT32], "0..3")
    check_refused(oracle, OPERATORS[0], [x, fixed([0, 1]), fixed(4)], [DType.INT32], "do not begin")
    check_refused(oracle, OPERATORS[0], [x, fixed([0, 1, 1]), fixed(-1)], [DType.INT32], "0 or more")
    x = sampled(values(0, (1, 3), DType.INT8))
    check_refused(oracle, OPERATORS[0], [x, fixed([0, 1, 1]), fixed(4)], [DType.INT8], "takes")


@pytest.mark.parametrize("dtype", NUMBERS, ids=lambda t: t.value)
@kernel_settings
@given(steps=st.lists(st.integers(0, 1), max_size=6), seed=st.integers(0, 99))
def test_segment_sum(optimized_oracle, dtype, steps, seed):
    ids = np.cumsum([0, *steps]).astype(np.int32)
    check(optimized_oracle, "segment_sum", [sampled(values(seed, (2, ids.size, 2), dtype)), fixed(ids)], [dtype])


@pytest.mark.parametrize("ids", [[1, 1, 2], [0, 2, 2], [0, 1, 0], [0, 0]])
def test_segment_sum_refused(optimized_oracle, ids):
    x = sampled(values(0, (1, 3), DType.INT32))
    check_refused(optimized_oracle, "segment_sum", [x, fixed(ids)], [DType.INT32], "segment ids")
