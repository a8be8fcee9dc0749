"""TILE against TFLite."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.interpreter.move.test_slice import TYPES
from tests.support.draw import kernel_settings, shapes
from tests.support.nodes import check, check_refused, fixed, long, sampled, values
from tflq.graph import DType


@pytest.mark.parametrize("dtype", [*TYPES, DType.STRING], ids=lambda t: t.value)
def test_every_type(oracle, dtype):
    check(oracle, "tile", [sampled(values(0, (3, 2, 3), dtype)), long([2, 3])], [dtype])


@kernel_settings
@given(data=st.data(), shape=shapes(5, 3), seed=st.integers(0, 99))
def test_every_axis(oracle, data, shape, seed):
    multiples = [data.draw(st.integers(0, 3)) for _ in shape]
    check(oracle, "tile", [sampled(values(seed, (2, *shape), DType.INT8)), fixed(multiples)], [DType.INT8])


@pytest.mark.parametrize("multiples", [[2], [2, -1]])
def test_refused(oracle, multiples):
    x = sampled(values(0, (1, 2, 6), DType.INT8))
    check_refused(oracle, "tile", [x, fixed(multiples)], [DType.INT8], "each axis")
