"""SLICE against TFLite."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.draw import kernel_settings, shapes
from tests.support.nodes import check, check_refused, fixed, long, sampled, values
from tflq.graph import DType

TYPES = [t for t in DType if t.bits in (8, 16, 32, 64) and "float8" not in t.value and t is not DType.BFLOAT16]


@pytest.mark.parametrize("dtype", [*TYPES, DType.STRING, DType.INT4], ids=lambda t: t.value)
def test_every_type(oracle, dtype):
    x = values(0, (3, 4, 6, 2), dtype)
    check(oracle, "slice", [sampled(x, dtype=dtype), long([1, 2, 0]), long([2, -1, 2])], [dtype])


@kernel_settings
@given(data=st.data(), shape=shapes(7, 4), seed=st.integers(0, 99))
def test_boxes(oracle, data, shape, seed):
    begin = [data.draw(st.integers(0, n)) for n in shape]
    size = [data.draw(st.one_of(st.just(-1), st.integers(0, n - b))) for n, b in zip(shape, begin, strict=True)]
    check(oracle, "slice", [sampled(values(seed, (2, *shape), DType.INT8)), fixed(begin), fixed(size)], [DType.INT8])


@pytest.mark.parametrize(
    ("begin", "size", "message"),
    [([0, 3], [2, 2], "leave"), ([0, 0], [2, -2], "leave"), ([0], [2], "each axis")],
)
def test_refused(oracle, begin, size, message):
    x = sampled(values(0, (1, 2, 4), DType.INT8))
    check_refused(oracle, "slice", [x, fixed(begin), fixed(size)], [DType.INT8], message)
