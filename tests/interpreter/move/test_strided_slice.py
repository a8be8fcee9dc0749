"""STRIDED_SLICE against TFLite."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.interpreter.move.test_slice import TYPES
from tests.support.draw import kernel_settings, shapes
from tests.support.nodes import check, check_refused, fixed, sampled, values
from tflq.errors import GraphError
from tflq.graph import DType

MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


def entries(begin, end, strides):
    return [fixed(np.array(numbers, np.int32)) for numbers in (begin, end, strides)]


@pytest.mark.parametrize("dtype", [*TYPES, DType.STRING], ids=lambda t: t.value)
def test_every_type(oracle, dtype):
    x = values(0, (3, 4, 6, 2), dtype)
    operands = [sampled(x, dtype=dtype), *entries([1, -1, 0], [4, 0, 2], [2, -3, 1])]
    check(oracle, "strided_slice", operands, [dtype], end_mask=2)


@st.composite
def slices(draw):
    """A shape, entries for some of its axes, and masks with at most one ellipsis."""
    shape = draw(shapes(5, 4))
    count = draw(st.integers(0, len(shape)))
    begin, end = ([draw(st.integers(-6, 6)) for _ in range(count)] for _ in range(2))
    strides = [draw(st.sampled_from([1, 1, 2, 3, -1, -2])) for _ in range(count)]
    masks = {name: draw(st.integers(0, (1 << count) - 1)) for name in MASKS}
    masks["ellipsis_mask"] = draw(st.sampled_from([0, 0, 0, *(1 << i for i in range(count))]))
    return shape, begin, end, strides, masks


@kernel_settings
@given(drawn=slices(), seed=st.integers(0, 99))
def test_masks(oracle, drawn, seed):
    shape, begin, end, strides, masks = drawn
    x = sampled(values(seed, (2, *shape), DType.INT16))
    try:
        check(oracle, "strided_slice", [x, *entries(begin, end, strides)], [DType.INT16], **masks)
    except GraphError as error:
        assume("takes index" not in str(error))  # TFLite writes nothing there and returns what the memory held
        raise


@pytest.mark.parametrize("begin", [[0, 1], [1, -3]])
def test_offset(oracle, begin):
    x = sampled(values(1, (2, 4, 6), DType.INT8))
    check(oracle, "strided_slice", [x, *entries(begin, [2, 3], [1, 2])], [DType.INT8], offset=True)


def test_refused(oracle):
    x = sampled(values(0, (1, 4), DType.INT8))
    check_refused(oracle, "strided_slice", [x, *entries([0], [4], [0])], [DType.INT8], "not 0")
    check_refused(oracle, "strided_slice", [x, *entries([0, 1], [4], [1])], [DType.INT8], "equal lengths")


def test_an_index_outside_its_axis_is_refused(oracle):
    x = sampled(values(0, (1, 4), DType.INT8))
    with pytest.raises(GraphError, match="takes index 4 with stride 1 of an axis of 4"):
        check(oracle, "strided_slice", [x, *entries([4], [5], [1])], [DType.INT8], shrink_axis_mask=1)
