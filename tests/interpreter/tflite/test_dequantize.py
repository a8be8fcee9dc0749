"""DEQUANTIZE against TFLite: every quantized value."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.draw import affine, every_code, kernel_settings, one_input, quantizations
from tests.support.single_op import check_against_oracle
from tests.support.types import EIGHT_BITS, FLOAT32, INT8, INT16, QUANTIZED
from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Affine, DType
from tflq.interpreter import lower


@pytest.mark.parametrize("dtype", QUANTIZED)
@kernel_settings
@given(data=st.data())
def test_every_code(oracle, dtype, data):
    codes = every_code(dtype)
    graph = one_input("dequantize", codes.shape[1:], (dtype, data.draw(quantizations(dtype))), (FLOAT32, None))
    check_against_oracle(oracle, graph, [codes])


@pytest.mark.parametrize("dtype", [*QUANTIZED, DType.INT4])
def test_types_of_8_bits_are_a_table(dtype):
    """256 float32 stay in the first-level cache, 65536 do not."""
    graph = lower(one_input("dequantize", (4,), (dtype, affine(dtype, 0.1)), (FLOAT32, None)))
    assert (graph.nodes[0].params.table is not None) == (dtype in EIGHT_BITS)


@pytest.mark.parametrize("dtype", EIGHT_BITS)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_per_channel(oracle, dtype, axis):
    rng = np.random.default_rng(axis)
    shape = (3, 4, 5)
    zero = rng.integers(dtype.minimum, dtype.maximum, shape[axis])
    scale = rng.uniform(0.01, 0.1, shape[axis]).astype(np.float32)
    graph = one_input("dequantize", shape, (dtype, Affine(scale, zero, axis, 8, dtype.is_signed)), (FLOAT32, None))
    codes = rng.integers(dtype.minimum, dtype.maximum, (50, *shape), dtype.storage, endpoint=True)
    check_against_oracle(oracle, graph, [codes])


def test_refusals():
    with pytest.raises(UnsupportedError, match="takes 0 only"):
        lower(one_input("dequantize", (4,), (INT16, affine(INT16, 1, 2)), (FLOAT32, None)))
    with pytest.raises(GraphError, match="no scale"):
        lower(one_input("dequantize", (4,), (INT8, None), (FLOAT32, None)))
    with pytest.raises(UnsupportedError, match="the kernel takes int2"):
        lower(one_input("dequantize", (4,), (DType.INT32, affine(DType.INT32, 1)), (FLOAT32, None)))
