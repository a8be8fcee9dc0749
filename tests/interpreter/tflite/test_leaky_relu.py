"""LEAKY_RELU against TFLite: every quantized value."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.draw import affine, every_code, kernel_settings, one_input, quantizations
from tests.support.single_op import check_against_oracle
from tests.support.types import INT16, QUANTIZED
from tflq.errors import UnsupportedError
from tflq.interpreter import lower


@pytest.mark.parametrize("dtype", QUANTIZED)
@kernel_settings
@given(data=st.data(), alpha=st.one_of(st.floats(0.0, 2.0, width=32), st.sampled_from([0.0, 0.01, 0.5, 1.0])))
def test_every_code(oracle, dtype, data, alpha):
    source, target = data.draw(quantizations(dtype)), data.draw(quantizations(dtype))
    codes = every_code(dtype)
    graph = one_input("leaky_relu", codes.shape[1:], (dtype, source), (dtype, target), alpha=alpha)
    check_against_oracle(oracle, graph, [codes])


@pytest.mark.parametrize("alpha", [-0.3, -1.0, -0.5])
@pytest.mark.parametrize("dtype", QUANTIZED)
def test_negative_alpha(oracle, dtype, alpha):
    codes = every_code(dtype)
    source, target = affine(dtype, 0.5), affine(dtype, 0.37)
    graph = one_input("leaky_relu", codes.shape[1:], (dtype, source), (dtype, target), alpha=alpha)
    check_against_oracle(oracle, graph, [codes])


def test_int16_with_a_zero_point_is_refused():
    with pytest.raises(UnsupportedError, match="takes 0 only"):
        lower(one_input("leaky_relu", (4,), (INT16, affine(INT16, 1, 2)), (INT16, affine(INT16, 1)), alpha=0.1))
