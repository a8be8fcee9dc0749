"""REVERSE_V2 against TFLite."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.interpreter.move.test_gather import TYPES
from tests.support.draw import kernel_settings, shapes
from tests.support.nodes import check, check_refused, fixed, sampled, values
from tflq.graph import DType


@pytest.mark.parametrize("dtype", [t for t in TYPES if t is not DType.INT4], ids=lambda t: t.value)
def test_every_type(oracle, dtype):
    check(oracle, "reverse_v2", [sampled(values(0, (3, 4, 3, 2), dtype)), fixed([1])], [dtype])


@kernel_settings
@given(data=st.data(), shape=shapes(5, 3), seed=st.integers(0, 99))
def test_neighbors(oracle, data, shape, seed):
    first = data.draw(st.integers(0, len(shape) - 1))
    last = data.draw(st.integers(first, len(shape) - 1))
    axes = data.draw(st.permutations(range(first, last + 1)))
    axes = [axis - len(shape) * data.draw(st.booleans()) for axis in axes]
    check(oracle, "reverse_v2", [sampled(values(seed, (2, *shape), DType.INT16)), fixed(axes)], [DType.INT16])


@pytest.mark.parametrize(("axes", "message"), [([0, 2], "neighbors"), ([3], "out of range"), ([1, 1], "once")])
def test_refused(oracle, axes, message):
    x = sampled(values(0, (1, 4, 2, 3), DType.INT8))
    check_refused(oracle, "reverse_v2", [x, fixed(axes)], [DType.INT8], message)
