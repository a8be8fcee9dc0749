"""TANH against TFLite: every quantized value."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.draw import affine, every_code, kernel_settings, one_input, quantizations, scales
from tests.support.single_op import check_against_oracle
from tests.support.types import EIGHT_BITS, INT16
from tflq.errors import UnsupportedError
from tflq.interpreter import lower


@pytest.mark.parametrize("dtype", EIGHT_BITS)
@kernel_settings
@given(data=st.data())
def test_8_bits(oracle, dtype, data):
    source, target = data.draw(quantizations(dtype, -12, 2)), data.draw(quantizations(dtype, -9, 0))
    graph = one_input("tanh", (256,), (dtype, source), (dtype, target))
    check_against_oracle(oracle, graph, [every_code(dtype)])


@kernel_settings
@given(scale=scales(-20, 0))
def test_int16(oracle, scale):
    graph = one_input("tanh", (65536,), (INT16, affine(INT16, scale)), (INT16, affine(INT16, 1 / 32768)))
    check_against_oracle(oracle, graph, [every_code(INT16)])


def test_int16_with_another_output_scale_is_refused():
    with pytest.raises(UnsupportedError, match="takes 1/32768"):
        lower(one_input("tanh", (4,), (INT16, affine(INT16, 1)), (INT16, affine(INT16, 1 / 128))))
