"""SOFTMAX against TFLite."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.draw import affine, kernel_settings, one_input, scales, seeds, zero_points
from tests.support.single_op import check_against_oracle, random_inputs
from tests.support.types import INT8, INT16, UINT8
from tflq.errors import GraphError, UnsupportedError
from tflq.interpreter import Engine, lower
from tflq.oracle import OracleAborted

OUTPUTS = {INT8: affine(INT8, 1 / 256, -128), UINT8: affine(UINT8, 1 / 256, 0), INT16: affine(INT16, 1 / 32768)}
betas = st.sampled_from([1.0, 0.1, 0.5, 2.0, 10.0])


def softmax_graph(shape, dtype, source, target=None, beta=1.0):
    out = target or dtype
    return one_input("softmax", shape, (dtype, source), (out, OUTPUTS[out]), beta=beta)


@pytest.mark.parametrize(("dtype", "target"), [(INT8, INT8), (UINT8, UINT8), (INT8, INT16), (UINT8, INT16)])
@kernel_settings
@given(data=st.data(), scale=scales(-10, 2), beta=betas, classes=st.integers(1, 300), seed=seeds)
def test_8_bits(oracle, dtype, target, data, scale, beta, classes, seed):
    source = affine(dtype, scale, data.draw(zero_points(dtype)))
    graph = softmax_graph((3, classes), dtype, source, target, beta)
    inputs = random_inputs(np.random.default_rng(seed), graph, 12)
    inputs[0][:4] //= 16  # rows whose values are close together
    check_against_oracle(oracle, graph, inputs)


@kernel_settings
@given(scale=scales(-16, 2), beta=betas, classes=st.integers(1, 300), seed=seeds)
def test_int16(oracle, scale, beta, classes, seed):
    graph = softmax_graph((2, classes), INT16, affine(INT16, scale), beta=beta)
    inputs = random_inputs(np.random.default_rng(seed), graph, 12)
    inputs[0][:6] //= 512
    check_against_oracle(oracle, graph, inputs)


@pytest.mark.parametrize("scale", [0.001, 0.02, 0.1, 0.6])
def test_every_difference_to_the_maximum(oracle, scale):
    rows = np.stack([np.full(256, 127), np.arange(-128, 128)], 1).astype(np.int8)
    check_against_oracle(oracle, softmax_graph((2,), INT8, affine(INT8, scale)), [rows])


def test_every_difference_of_int16(oracle):
    rows = np.stack([np.full(65536, 32767), np.arange(-32768, 32768)], 1).astype(np.int16)[None]
    check_against_oracle(oracle, softmax_graph((65536, 2), INT16, affine(INT16, 10 / 65535)), [rows])


@pytest.mark.parametrize("axes", [(5,), (2, 5), (2, 3, 5), (1, 2, 2, 3, 5)])
def test_ranks(oracle, axes):
    graph = softmax_graph(axes, INT8, affine(INT8, 0.1))
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(0), graph, 4))


def test_the_sum_at_which_tflite_aborts(oracle):
    fits = softmax_graph((511,), INT8, affine(INT8, 0.1))
    check_against_oracle(oracle, fits, [np.full((2, 511), 3, np.int8)])
    beyond = softmax_graph((512,), INT8, affine(INT8, 0.1))
    with pytest.raises(UnsupportedError, match="sum up to 512"):
        Engine(beyond).run([np.full((2, 512), 3, np.int8)])
    with pytest.raises(OracleAborted):
        check_against_oracle(oracle, beyond, [np.full((2, 512), 3, np.int8)])


@pytest.mark.parametrize("scale", [31.99, 32.0, 32.01, 64.0, 1e6, 1e30])
@pytest.mark.parametrize("operator", ["softmax", "log_softmax"])
def test_scales_whose_multiplier_is_the_largest(oracle, operator, scale):
    """scale * 2^26 ends at 2^31 - 1."""
    target = OUTPUTS[INT8] if operator == "softmax" else affine(INT8, 1 / 16, 127)
    options = {"beta": 1.0} if operator == "softmax" else {}
    graph = one_input(operator, (2, 3), (INT8, affine(INT8, scale)), (INT8, target), **options)
    inputs = random_inputs(np.random.default_rng(2), graph, 20)
    inputs[0][10:] %= 3
    check_against_oracle(oracle, graph, inputs)


@pytest.mark.parametrize("beta", [0.0, float("nan"), 2.0**-27, -1.0])
def test_beta_at_which_tflite_aborts(beta):
    with pytest.raises(UnsupportedError, match="TFLite aborts the process"):
        lower(softmax_graph((4,), INT8, affine(INT8, 1.0), beta=beta))


def test_refusals():
    source = affine(INT8, 0.1)
    with pytest.raises(UnsupportedError, match=r"takes 0\.00390625 and -128"):
        lower(one_input("softmax", (4,), (INT8, source), (INT8, affine(INT8, 1 / 256, 0))))
    with pytest.raises(UnsupportedError, match="the kernel takes int8, int16"):
        lower(one_input("softmax", (4,), (INT8, source), (UINT8, OUTPUTS[UINT8]), beta=1.0))
    with pytest.raises(GraphError, match="scalar"):
        lower(softmax_graph((), INT8, source))
