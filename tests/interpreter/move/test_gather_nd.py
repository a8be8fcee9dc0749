"""GATHER_ND against TFLite."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.interpreter.move.test_gather import TYPES, operand
from tests.support.draw import shapes
from tests.support.nodes import check, check_refused, few, fixed, sampled, values
from tflq.graph import DType


@pytest.mark.parametrize("index", [np.int16, np.int32, np.int64])
@pytest.mark.parametrize("dtype", [*(t for t in TYPES if t is not DType.INT4), DType.STRING], ids=lambda t: t.value)
def test_every_type(oracle, dtype, index):
    x = sampled(values(0, (3, 4, 3, 2), dtype))
    check(oracle, "gather_nd", [x, fixed(np.array([[3, 0], [3, 1]], index))], [dtype])


@pytest.mark.parametrize("which", [(True, False), (False, True), (True, True)])
@few
@given(data=st.data(), shape=shapes(4, 4), outer=shapes(2, 3), seed=st.integers(0, 99))
def test_coordinates(oracle, which, data, shape, outer, seed):
    axes = data.draw(st.integers(1, len(shape)))
    indices = values(seed, (3, *outer, axes), DType.INT32) % np.array(shape[:axes], np.int32)
    operands = [operand(values(seed, (3, *shape), DType.INT8), which[0]), operand(indices, which[1])]
    check(oracle, "gather_nd", operands, [DType.INT8])


def test_refused(oracle):
    x = sampled(values(0, (1, 4, 2), DType.INT8))
    check_refused(oracle, "gather_nd", [x, fixed([[0, 2]])], [DType.INT8], "axis 1 .* 0..1")
    check_refused(oracle, "gather_nd", [x, fixed([[-1, 0]])], [DType.INT8], "axis 0")
    check_refused(oracle, "gather_nd", [x, fixed([[0, 0, 0]])], [DType.INT8], "do not index")
    check_refused(oracle, "gather_nd", [x, fixed(np.zeros((2, 3, 0), np.int32))], [DType.INT8], "do not index")
