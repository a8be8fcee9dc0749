"""LOGISTIC against TFLite: every quantized value; and the sigmoid table read out of TFLite."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.draw import affine, every_code, kernel_settings, one_input, quantizations
from tests.support.draw import scales as draw_scales
from tests.support.single_op import check_against_oracle
from tests.support.types import EIGHT_BITS, INT8, INT16
from tflq.converters.tflite import model_to_bytes
from tflq.errors import UnsupportedError
from tflq.interpreter import lower
from tflq.interpreter.numerics.integer_functions import SIGMOID_TABLE


def logistic_graph(dtype, source, shape, zero_point=None):
    scale = 1 / 32768 if dtype is INT16 else 1 / 256
    zero = (0 if dtype is INT16 else dtype.minimum) if zero_point is None else zero_point
    return one_input("logistic", shape, (dtype, source), (dtype, affine(dtype, scale, zero)))


@pytest.mark.parametrize("dtype", EIGHT_BITS)
@kernel_settings
@given(data=st.data(), zero_point=st.booleans())
def test_8_bits(oracle, dtype, data, zero_point):
    source = data.draw(quantizations(dtype, -12, 2))
    check_against_oracle(oracle, logistic_graph(dtype, source, (256,), 7 if zero_point else None), [every_code(dtype)])


@kernel_settings
@given(scale=draw_scales(-20, 0))
def test_int16(oracle, scale):
    check_against_oracle(oracle, logistic_graph(INT16, affine(INT16, scale), (65536,)), [every_code(INT16)])


def test_the_sigmoid_table_is_tflites(oracle):
    """TANH of int16 with input scale 1/48 steps from point to point: x' = 256 x, y = T[x] - 32768.

    The last point is only a neighbor: one step of 1/8 before it, the line from point 254 rounds to it.
    """
    scale = np.float32(1 / 48)
    target = (INT16, affine(INT16, 1 / 32768))
    graph = one_input("tanh", (255,), (INT16, affine(INT16, scale)), target)
    judged = oracle.run(model_to_bytes(graph), [np.arange(255, dtype=np.int16)[None]])
    assert np.array_equal(judged.tensors[graph.outputs[0]][0].astype(np.int64) + 32768, SIGMOID_TABLE[:255])
    fine = one_input("tanh", (1,), (INT16, affine(INT16, scale / 8)), target)
    judged = oracle.run(model_to_bytes(fine), [np.array([[254 * 8 + 7]], np.int16)])
    assert int(judged.tensors[fine.outputs[0]][0, 0]) + 32768 == SIGMOID_TABLE[255]


def test_refusals():
    with pytest.raises(UnsupportedError, match=r"takes 0\.00390625"):
        lower(one_input("logistic", (4,), (INT8, affine(INT8, 1)), (INT8, affine(INT8, 1 / 128, -128))))
    with pytest.raises(UnsupportedError, match="takes 0 only"):
        lower(logistic_graph(INT16, affine(INT16, 1, 4), (4,)))
