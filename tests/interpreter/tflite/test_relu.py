"""RELU, RELU6, RELU_N1_TO_1 and RELU_0_TO_1 against TFLite: every quantized value."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.draw import affine, every_code, kernel_settings, one_input, quantizations
from tests.support.single_op import check_against_oracle
from tests.support.types import EIGHT_BITS, INT8, INT16, QUANTIZED
from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Affine
from tflq.interpreter import lower

CASES = [(operator, dtype) for operator in ("relu", "relu6") for dtype in QUANTIZED]
CASES += [(operator, dtype) for operator in ("relu_n1_to_1", "relu_0_to_1") for dtype in EIGHT_BITS]


@pytest.mark.parametrize(("operator", "dtype"), CASES)
@kernel_settings
@given(data=st.data())
def test_every_code(oracle, operator, dtype, data):
    source, target = data.draw(quantizations(dtype)), data.draw(quantizations(dtype))
    codes = every_code(dtype)
    check_against_oracle(oracle, one_input(operator, codes.shape[1:], (dtype, source), (dtype, target)), [codes])


@pytest.mark.parametrize("operator", ["relu_n1_to_1", "relu_0_to_1"])
def test_int16_is_refused(operator):
    with pytest.raises(UnsupportedError, match="takes int8, uint8"):
        lower(one_input(operator, (4,), (INT16, affine(INT16, 1)), (INT16, affine(INT16, 1))))


def test_refusals():
    with pytest.raises(UnsupportedError, match="takes 0 only"):
        lower(one_input("relu", (4,), (INT16, affine(INT16, 1, 2)), (INT16, affine(INT16, 1))))
    with pytest.raises(GraphError, match="no scale"):
        lower(one_input("relu", (4,), (INT8, None), (INT8, affine(INT8, 1))))
    per_channel = affine(INT8, 1.0)
    two = Affine(per_channel.scale.repeat(2), per_channel.zero_point.repeat(2), 0)
    with pytest.raises(UnsupportedError, match="per channel"):
        lower(one_input("relu", (2,), (INT8, two), (INT8, per_channel)))
