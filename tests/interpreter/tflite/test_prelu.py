"""PRELU against TFLite."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.draw import affine, all_pairs, kernel_settings, quantizations, seeds, two_inputs
from tests.support.single_op import check_against_oracle, random_inputs
from tests.support.types import EIGHT_BITS, FLOAT32, INT8, INT16
from tflq.errors import GraphError, UnsupportedError
from tflq.interpreter import lower

SHAPES = [((2, 3, 4), (2, 3, 4)), ((2, 3, 4), (1, 1, 4)), ((2, 3, 4), (4,)), ((5, 2, 3, 4), (2, 1, 1)), ((3,), ())]


@pytest.mark.parametrize("dtype", EIGHT_BITS)
@kernel_settings
@given(data=st.data())
def test_every_pair_of_codes(oracle, dtype, data):
    x, alpha, out = (data.draw(quantizations(dtype)) for _ in range(3))
    graph = two_inputs("prelu", ((256,), (256,)), ((dtype, x), (dtype, alpha)), (dtype, out))
    check_against_oracle(oracle, graph, all_pairs(dtype))


@kernel_settings
@given(data=st.data(), seed=seeds, sizes=st.sampled_from(SHAPES))
def test_int16_takes_an_int8_alpha(oracle, data, seed, sizes):
    x, out = (data.draw(quantizations(INT16, -16, -4)) for _ in range(2))
    graph = two_inputs("prelu", sizes, ((INT16, x), (INT8, data.draw(quantizations(INT8)))), (INT16, out))
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(seed), graph, 20))


@pytest.mark.parametrize("sizes", SHAPES)
@pytest.mark.parametrize("dtype", [*EIGHT_BITS, FLOAT32])
def test_broadcast(oracle, sizes, dtype):
    quantization = None if dtype is FLOAT32 else affine(dtype, 0.3, 5)
    graph = two_inputs("prelu", sizes, ((dtype, quantization),) * 2, (dtype, quantization))
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(1), graph, 20))


def test_float_signed_zero_and_nan(oracle):
    graph = two_inputs("prelu", ((6, 1), (6,)), ((FLOAT32, None),) * 2, (FLOAT32, None))
    graph.tensors[1] = graph.tensors[1].__class__("alpha", (6, 1), FLOAT32)
    values = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, -2.5], np.float32)
    graph.tensors[2] = graph.tensors[2].__class__("y", (6, 1), FLOAT32)
    check_against_oracle(oracle, graph, [np.tile(values, (6, 1))[..., None], np.repeat(values, 6).reshape(6, 6, 1)])


def test_refusals():
    same = affine(INT8, 1)
    with pytest.raises(GraphError, match="is larger than the input"):
        lower(two_inputs("prelu", ((3,), (2, 3)), ((INT8, same),) * 2, (INT8, same)))
    with pytest.raises(UnsupportedError, match="kernel takes int8"):
        lower(two_inputs("prelu", ((3,), (3,)), ((INT16, same), (INT16, same)), (INT16, same)))
