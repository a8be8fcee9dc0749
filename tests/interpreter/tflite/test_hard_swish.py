"""HARD_SWISH against TFLite: every quantized value."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.support.draw import affine, every_code, kernel_settings, one_input, quantizations
from tests.support.single_op import check_against_oracle
from tests.support.types import EIGHT_BITS, INT8, INT16
from tflq.errors import UnsupportedError
from tflq.interpreter import lower


@pytest.mark.parametrize("dtype", EIGHT_BITS)
@kernel_settings
@given(data=st.data())
def test_every_code(oracle, dtype, data):
    source, target = data.draw(quantizations(dtype)), data.draw(quantizations(dtype))
    assume(source.scale[0] < 128 * target.scale[0])
    graph = one_input("hard_swish", (256,), (dtype, source), (dtype, target))
    check_against_oracle(oracle, graph, [every_code(dtype)])


@pytest.mark.parametrize("exponent", [-27, -22, -15, 0, 8, 20])
def test_extreme_scales(oracle, exponent):
    scale = 1.3 * 2.0**exponent
    graph = one_input("hard_swish", (256,), (INT8, affine(INT8, scale, 5)), (INT8, affine(INT8, scale * 0.7)))
    check_against_oracle(oracle, graph, [every_code(INT8)])


@pytest.mark.parametrize("exponent", range(5, 16))
def test_coarse_outputs(oracle, exponent):
    source, target = affine(INT8, 2.0**-9, 3), affine(INT8, 1.1 * 2.0 ** (exponent - 9), -4)
    check_against_oracle(oracle, one_input("hard_swish", (256,), (INT8, source), (INT8, target)), [every_code(INT8)])


def test_refusals():
    with pytest.raises(UnsupportedError, match="1/128 of the input"):
        lower(one_input("hard_swish", (4,), (INT8, affine(INT8, 200)), (INT8, affine(INT8, 1))))
    with pytest.raises(UnsupportedError, match="takes int8, uint8"):
        lower(one_input("hard_swish", (4,), (INT16, affine(INT16, 1)), (INT16, affine(INT16, 1))))
