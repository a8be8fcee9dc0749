"""Float activations with integer weights against TFLite: FULLY_CONNECTED, CONV_2D, DEPTHWISE_CONV_2D."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.draw import kernel_settings
from tests.support.layers import Geometry, geometries
from tests.support.single_op import check_against_oracle
from tests.support.types import FLOAT32, INT8, UINT8
from tflq.errors import UnsupportedError
from tflq.graph import Affine, DType, Graph, GraphBuilder
from tflq.interpreter import lower

INT4 = DType.INT4
ACTIVATIONS = ["none", "relu", "relu6", "relu_n1_to_1"]


def hybrid_graph(
    rng: np.random.Generator,
    operator: str,
    shape: tuple[int, ...],
    weights_shape: tuple[int, ...],
    output: tuple[int, ...],
    scales: int,
    dtype: DType = INT8,
    axis: int = 0,
    bias: bool = True,
    lowest: int | None = None,
    version: int = 1,
    **attributes: object,
) -> Graph:
    least = (dtype.minimum if dtype is UINT8 else -dtype.maximum) if lowest is None else lowest
    codes = rng.integers(least, dtype.maximum, weights_shape, dtype.storage, endpoint=True)
    scale = rng.uniform(0.001, 0.1, scales).astype(np.float32)
    quantization = Affine(scale, np.zeros(scales, np.int64), axis if scales > 1 else None, dtype.bits, dtype.is_signed)
    b = GraphBuilder(operator)
    operands = [b.input("x", shape, FLOAT32), b.constant("weights", codes, quantization, dtype)]
    if bias:
        operands.append(b.constant("bias", rng.normal(size=output[-1]).astype(np.float32)))
    return b.build([b.add(operator, operands, output, FLOAT32, version=version, **attributes)])


def values(rng: np.random.Generator, shape: tuple[int, ...], samples: int) -> np.ndarray:
    """Draw samples of several kinds: positive only, with zero rows, all zero, large and tiny."""
    x = rng.normal(size=(samples, *shape)) * 10.0 ** rng.integers(-3, 3, (samples, *(1,) * len(shape)))
    x[1::4] = np.abs(x[1::4])
    x[2::4] *= rng.integers(0, 2, x[2::4].shape)
    x[3::8] = 0
    return x.astype(np.float32)


def check(oracle, rng, graph, samples=12):
    shape = graph.tensors[graph.inputs[0]].shape
    check_against_oracle(oracle, graph, [values(rng, shape, samples)])


@kernel_settings
@given(data=st.data())
def test_fully_connected(oracle, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    depth, outputs, rows = (data.draw(st.integers(1, n)) for n in (70, 20, 3))
    dtype = data.draw(st.sampled_from([INT8, INT8, INT4, UINT8]))
    graph = hybrid_graph(
        rng,
        "fully_connected",
        (rows, depth),
        (outputs, depth),
        (rows, outputs),
        data.draw(st.sampled_from([1, outputs])) if dtype is not UINT8 else 1,
        dtype,
        bias=data.draw(st.booleans()),
        lowest=data.draw(st.sampled_from([None, -128])) if dtype is INT8 else None,
        version=9,
        asymmetric_quantize_inputs=data.draw(st.booleans()),
        fused_activation_function=data.draw(st.sampled_from([*ACTIVATIONS, "tanh"])),
    )
    check(oracle, rng, graph)


@kernel_settings
@given(data=st.data(), where=geometries())
def test_conv_2d(oracle, data, where: Geometry):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    batch, depth, groups, each = (data.draw(st.integers(1, n)) for n in (2, 5, 2, 5))
    outputs = groups * each
    scales = outputs if groups > 1 else data.draw(st.sampled_from([1, outputs]))
    dtype = data.draw(st.sampled_from([INT8, INT8, INT4]))
    graph = hybrid_graph(
        rng,
        "conv_2d",
        (batch, *where.size, depth * groups),
        (outputs, *where.kernel, depth),
        (batch, *where.output, outputs),
        scales,
        dtype,
        lowest=data.draw(st.sampled_from([None, -128])) if dtype is INT8 else None,
        version=8,
        fused_activation_function=data.draw(st.sampled_from(ACTIVATIONS)),
        **where.attributes,
        **where.dilations,
    )
    check(oracle, rng, graph, 8)


@kernel_settings
@given(data=st.data(), where=geometries())
def test_depthwise_conv_2d(oracle, data, where: Geometry):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    batch, channels, multiplier = (data.draw(st.integers(1, n)) for n in (2, 5, 3))
    outputs = channels * multiplier
    graph = hybrid_graph(
        rng,
        "depthwise_conv_2d",
        (batch, *where.size, channels),
        (1, *where.kernel, outputs),
        (batch, *where.output, outputs),
        outputs,
        axis=3,
        version=6,
        depth_multiplier=multiplier,
        fused_activation_function=data.draw(st.sampled_from(ACTIVATIONS)),
        **where.attributes,
        **where.dilations,
    )
    check(oracle, rng, graph, 8)


def test_grouped_weights_need_a_scale_for_each_channel():
    where = Geometry((4, 4), (2, 2), (1, 1), (1, 1), "same")
    graph = hybrid_graph(
        np.random.default_rng(0), "conv_2d", (1, 4, 4, 4), (6, 2, 2, 2), (1, 4, 4, 6), 1, **where.attributes
    )
    with pytest.raises(UnsupportedError, match="one for each of the 6 output channels"):
        lower(graph)


@pytest.mark.parametrize("asymmetric", [False, True])
@pytest.mark.parametrize("far", [np.inf, 3.4e38, 1.0, 1e-36, 1e-37, 1e-38, 1e-41, 1e-44, 0.0])
def test_rows_at_the_ends_of_float32(oracle, asymmetric, far):
    """One of 20 columns, whole vectors and four, is as large as stated, or all are as small: each row's reach."""
    rng = np.random.default_rng(4)
    options = {"version": 9, "asymmetric_quantize_inputs": asymmetric}
    graph = hybrid_graph(rng, "fully_connected", (6, 20), (5, 20), (6, 5), 1, bias=False, **options)
    x = rng.uniform(-0.9, 0.9, (2, 6, 20)).astype(np.float32)
    if far < 1:
        x *= np.float32(far)
    else:
        x[:, np.arange(6), rng.permutation(20)[:6]] = far * rng.choice([-1, 1], 6)
    check_against_oracle(oracle, graph, [x])


def test_depthwise_without_a_bias(oracle):
    where = Geometry((4, 4), (2, 2), (1, 1), (1, 1), "same")
    graph = hybrid_graph(
        np.random.default_rng(0), "depthwise_conv_2d", (1, 4, 4, 4), (1, 2, 2, 4), (1, 4, 4, 4), 4, axis=3, bias=False,
        version=6, depth_multiplier=1, **where.attributes, **where.dilations,
    )  # fmt: skip
    check(oracle, np.random.default_rng(1), graph)


HALVES = [(-5.5, 27.5), (-27.5, 5.5), (-3.5, 31.5), (-31.5, 3.5), (-10.5, 24.5), (-6.5, 32.5), (-1.5, 43.5),
          (-43.5, 1.5), (-16.5, 16.5), (-11.0, 55.0), (-0.5, 254.5), (-100.5, 154.5), (0.0, 51.0),
          (-51.0, 0.0)]  # fmt: skip
"""Ranges whose zero point is a half but for the rounding of doubles: which bound it is taken from decides."""


def test_zero_points_between_two_codes(oracle):
    graph = hybrid_graph(
        np.random.default_rng(4), "fully_connected", (len(HALVES), 11), (5, 11), (len(HALVES), 5), 1, bias=False,
        version=9, asymmetric_quantize_inputs=True,
    )  # fmt: skip
    x = np.random.default_rng(5).uniform(0.1, 0.9, (3, len(HALVES), 11))
    low, high = (np.array([pair[i] for pair in HALVES])[:, None] for i in (0, 1))
    rows = low + x * (high - low)
    rows[..., 3], rows[..., 7] = low[:, 0], high[:, 0]
    check_against_oracle(oracle, graph, [rows.astype(np.float32)])


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize(
    ("depth", "asymmetric"),
    [
        (1023, False),
        (1024, False),
        (1025, False),
        (5000, False),
        (1023, True),
        (1024, True),
        (1025, True),
        (5000, True),
    ],
)
def test_sums_beyond_the_whole_numbers_of_float32(oracle, depth, rows, asymmetric):
    """All products are positive and odd: sums beyond 2^24 are rounded once, behind the last one."""
    draw, b = np.random.default_rng(depth), GraphBuilder("deep")
    codes = (draw.integers(40, 64, (depth, 3)) * 2 - 1).astype(np.int8)
    weights = b.constant("w", codes, Affine(np.array([0.5], np.float32), np.zeros(1, np.int64), None))
    x = b.input("x", (rows, depth), FLOAT32)
    options = {"adj_x": False, "adj_y": False, "asymmetric_quantize_inputs": asymmetric}
    graph = b.build([b.add("batch_matmul", [x, weights], (rows, 3), FLOAT32, version=4, **options)])
    given = draw.integers(40, 64, (2, rows, depth)) * 2 - 1
    given[..., 0] = 127
    check_against_oracle(oracle, graph, [given.astype(np.float32)])


@pytest.mark.parametrize("operator", ["fully_connected", "batch_matmul"])
@pytest.mark.parametrize("places", [(0,), (15,), (0, 1), (0, 2), (6, 7, 8), (7, 8), tuple(range(16))], ids=str)
@pytest.mark.parametrize("code", [127, 64, -127])
def test_the_sum_of_a_row_of_weights_wraps_in_pairs_of_columns(oracle, operator, places, code):
    """Of 260 blocks of sixteen columns, and three columns more, some places hold large weights."""
    draw, b = np.random.default_rng([260, *places]), GraphBuilder("long")
    codes = draw.integers(-2, 3, (260, 16, 5), np.int8)
    codes[:, list(places), :3] = code
    codes = np.concatenate([codes.reshape(-1, 5), np.full((3, 5), 100, np.int8)])
    axes, version = {"fully_connected": ({}, 9), "batch_matmul": ({"adj_x": False, "adj_y": False}, 4)}[operator]
    channels = 1 if axes else 5
    scales = Affine(
        np.linspace(0.25, 0.5, channels, dtype=np.float32), np.zeros(channels, np.int64), None if axes else 0
    )
    weights = b.constant("w", codes if axes else np.ascontiguousarray(codes.T), scales)
    x = b.input("x", (2, len(codes)), FLOAT32)
    made = b.add(operator, [x, weights], (2, 5), FLOAT32, version=version, asymmetric_quantize_inputs=True, **axes)
    check_against_oracle(oracle, b.build([made]), [np.abs(draw.normal(size=(2, 2, len(codes)))).astype(np.float32)])
