"""QUANTIZE against TFLite: from reals, and between all pairs of integer types."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.draw import affine, every_code, kernel_settings, one_input, quantizations, scales, seeds
from tests.support.single_op import check_against_oracle
from tests.support.types import FLOAT32, INT8, INT16, UINT8
from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Affine, DType
from tflq.interpreter import lower

PAIRS = [(a, b) for a in (INT8, UINT8) for b in (INT8, UINT8, INT16)]
PAIRS += [(INT16, INT8), (INT16, INT16), (INT16, DType.INT32)]


@pytest.mark.parametrize(("source", "target"), PAIRS)
@kernel_settings
@given(data=st.data())
def test_between_integers(oracle, source, target, data):
    codes = every_code(source)
    quantized = (source, data.draw(quantizations(source))), (target, data.draw(quantizations(target)))
    check_against_oracle(oracle, one_input("quantize", codes.shape[1:], *quantized), [codes])


@pytest.mark.parametrize(("source", "target"), [(INT8, UINT8), (UINT8, INT8)])
def test_equal_scales_flip_the_top_bit(oracle, source, target):
    graph = one_input(
        "quantize",
        (256,),
        (source, affine(source, 0.3)),
        (target, affine(target, 0.3, 128 * (source is INT8) - 128 * (source is UINT8))),
    )
    check_against_oracle(oracle, graph, [every_code(source)])


@pytest.mark.parametrize("target", [INT8, INT16])
@kernel_settings
@given(data=st.data(), scale=scales(-20, 0), seed=seeds)
def test_from_int32(oracle, target, data, scale, seed):
    limit = 2 ** np.random.default_rng(seed).uniform(1, 31, (2, 500))
    codes = np.round(np.random.default_rng(seed).uniform(-1, 1, (2, 500)) * limit).astype(np.int32)
    source = Affine.per_tensor(scale, 0, 32)
    graph = one_input("quantize", (500,), (DType.INT32, source), (target, data.draw(quantizations(target, -20, 2))))
    check_against_oracle(oracle, graph, [codes])


@pytest.mark.parametrize("target", [INT8, UINT8, INT16, DType.INT4])
@kernel_settings
@given(data=st.data(), seed=seeds)
def test_from_reals(oracle, target, data, seed):
    quantization = data.draw(quantizations(target))
    scale, zero_point = quantization.scale[0], int(quantization.zero_point[0])
    rng = np.random.default_rng(seed)
    near = (target.maximum - target.minimum + 20) * rng.uniform(-1, 1, (2, 2000)) - zero_point
    reals = (near * scale).astype(np.float32)
    reals[0, :500] = (np.round(near[0, :500]) + np.float32(0.5)) * scale
    check_against_oracle(oracle, one_input("quantize", (2000,), (FLOAT32, None), (target, quantization)), [reals])


@pytest.mark.parametrize("target", [INT8, UINT8, INT16])
def test_every_tie_and_its_neighbors(oracle, target):
    """With scale 1 the quotient is the input: the shortcut's rounding at each half, and one float32 beside it."""
    halves = np.arange(target.minimum - 3, target.maximum + 4).astype(np.float32) + np.float32(0.5)
    beside = [np.nextafter(halves, np.float32(sign * np.inf)) for sign in (-1, 1)]
    reals = np.stack([halves, *beside])
    zero_point = 0 if target is INT16 else 3
    graph = one_input("quantize", (halves.size,), (FLOAT32, None), (target, affine(target, 1.0, zero_point)))
    check_against_oracle(oracle, graph, [reals])


@pytest.mark.parametrize("zero_point", [-128, -1, 0, 127])
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 3e9, -3e9, 2147483520.0, -2147483648.0, 1e38, 0.0, -0.0])
def test_out_of_int32(oracle, zero_point, value):
    reals = np.array([[value, 1.0, -1.0, 300.0]], np.float32).repeat(20, 1)
    graph = one_input("quantize", (80,), (FLOAT32, None), (INT8, affine(INT8, 1.0, zero_point)))
    check_against_oracle(oracle, graph, [reals])


@pytest.mark.parametrize("target", [INT8, UINT8, INT16])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_from_reals_per_channel(oracle, target, axis):
    rng = np.random.default_rng(axis)
    shape = (3, 4, 5)
    count = shape[axis]
    zero = np.zeros(count, np.int64) if target is INT16 else rng.integers(target.minimum, target.maximum, count)
    quantization = Affine(rng.uniform(0.01, 0.1, count).astype(np.float32), zero, axis, target.bits, target.is_signed)
    graph = one_input("quantize", shape, (FLOAT32, None), (target, quantization))
    check_against_oracle(oracle, graph, [rng.normal(size=(9, *shape)).astype(np.float32) * 10])


def test_refusals():
    with pytest.raises(UnsupportedError, match="the kernel takes int8, int16"):
        lower(one_input("quantize", (4,), (DType.INT32, affine(DType.INT32, 1)), (UINT8, affine(UINT8, 1))))
    with pytest.raises(GraphError, match="no scale"):
        lower(one_input("quantize", (4,), (FLOAT32, None), (INT8, None)))
    with pytest.raises(UnsupportedError, match="takes 0 only"):
        lower(one_input("quantize", (4,), (INT16, affine(INT16, 1, 2)), (INT16, affine(INT16, 1))))
    three = Affine(np.ones(3, np.float32), np.zeros(3, np.int64), 0)
    with pytest.raises(GraphError, match="3 scales along axis 0"):
        lower(one_input("quantize", (4,), (FLOAT32, None), (INT8, three)))
