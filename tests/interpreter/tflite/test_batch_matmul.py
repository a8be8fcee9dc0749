"""BATCH_MATMUL against TFLite."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.support.draw import affine, kernel_settings, quantizations, scales, seeds
from tests.support.single_op import check_against_oracle, random_inputs
from tests.support.types import FLOAT32, INT8, INT16
from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Affine, DType, GraphBuilder
from tflq.interpreter import lower


@st.composite
def products(draw):
    """Shapes of both factors and of the product, and which are transposed."""
    a, k, b = (draw(st.integers(1, 6)) for _ in range(3))
    stack = draw(st.lists(st.integers(1, 3), max_size=3))
    stacks = [tuple(draw(st.sampled_from([1, n])) for n in stack[draw(st.integers(0, len(stack))) :]) for _ in range(2)]
    adj_x, adj_y = draw(st.booleans()), draw(st.booleans())
    x = (*stacks[0], k, a) if adj_x else (*stacks[0], a, k)
    y = (*stacks[1], b, k) if adj_y else (*stacks[1], k, b)
    return x, y, (*np.broadcast_shapes(*stacks), a, b), {"adj_x": adj_x, "adj_y": adj_y}


def batch_matmul(shapes, x, y, output):
    b = GraphBuilder("batch_matmul")
    operands = [b.input("x", shapes[0], *x), b.input("y", shapes[1], *y)]
    return b.build([b.add("batch_matmul", operands, shapes[2], *output, **shapes[3])])


@kernel_settings
@given(data=st.data(), shapes=products(), seed=seeds)
def test_int8(oracle, data, shapes, seed):
    x, y, out = (data.draw(quantizations(INT8, -6, 0)) for _ in range(3))
    graph = batch_matmul(shapes, (INT8, x), (INT8, y), (INT8, out))
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(seed), graph, 5))


@pytest.mark.parametrize("other", [INT16, INT8])
@kernel_settings
@given(shapes=products(), seed=seeds, sx=scales(-12, -6), sy=scales(-12, -6), so=scales(-8, -2))
def test_int16(oracle, other, shapes, seed, sx, sy, so):
    sides = (INT16, affine(INT16, sx)), (other, affine(other, sy)), (INT16, affine(INT16, so))
    graph = batch_matmul(shapes, *sides)
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(seed), graph, 5))


@kernel_settings
@given(shapes=products(), seed=seeds)
def test_float32_and_int32_output(oracle, shapes, seed):
    rng = np.random.default_rng(seed)
    graph = batch_matmul(shapes, (FLOAT32, None), (FLOAT32, None), (FLOAT32, None))
    check_against_oracle(oracle, graph, random_inputs(rng, graph, 5))
    graph = batch_matmul(shapes, (INT8, affine(INT8, 1, 3)), (INT8, affine(INT8, 1, 5)), (DType.INT32, None))
    check_against_oracle(oracle, graph, random_inputs(rng, graph, 5))


@pytest.mark.parametrize("asymmetric", [False, True])
@pytest.mark.parametrize("per_channel", [False, True])
@kernel_settings
@given(shapes=products(), seed=seeds)
def test_float32_with_int8_weights(oracle, asymmetric, per_channel, shapes, seed):
    rng = np.random.default_rng(seed)
    x, y, output, options = shapes
    assume(not asymmetric or len(y) < 5)  # refused where TFLite reads beyond its sums; the next test has five axes
    b = GraphBuilder("batch_matmul")
    quantization = affine(INT8, 0.02)
    if per_channel:
        scale = rng.uniform(0.01, 0.03, output[-1]).astype(np.float32)
        axis = len(y) - 2 if options["adj_y"] else len(y) - 1
        quantization = Affine(scale, np.zeros(output[-1], np.int64), axis)
    weights = b.constant("y", rng.integers(-127, 128, y).astype(np.int8), quantization)
    options = {**options, "asymmetric_quantize_inputs": asymmetric}
    graph = b.build([b.add("batch_matmul", [b.input("x", x, FLOAT32), weights], output, FLOAT32, **options)])
    check_against_oracle(oracle, graph, random_inputs(rng, graph, 4))


@pytest.mark.parametrize("asymmetric", [False, True])
@pytest.mark.parametrize(
    ("x", "y"),
    [
        ((2, 3, 4, 5), (1, 5, 6)),
        ((2, 3, 4, 5), (2, 1, 5, 6)),
        ((2, 2, 3, 4, 5), (1, 5, 6)),
        ((2, 2, 3, 4, 5), (2, 3, 5, 6)),
        ((2, 2, 3, 4, 5), (2, 2, 3, 5, 6)),
        ((2, 2, 3, 4, 5), (2, 2, 1, 5, 6)),
    ],
)
def test_where_tflite_looks_for_the_scales_of_a_stack(oracle, asymmetric, x, y):
    graph = hybrid(x, y, asymmetric)
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(len(x)), graph, 4))


def hybrid(x, y, asymmetric, scale=0.02, constant=True):
    b = GraphBuilder("batch_matmul")
    left = b.input("x", x, FLOAT32)
    codes = np.random.default_rng(1).integers(-127, 128, y).astype(np.int8)
    right = b.constant("y", codes, affine(INT8, scale)) if constant else b.input("y", y, INT8, affine(INT8, scale))
    output = (*np.broadcast_shapes(x[:-2], y[:-2]), x[-2], y[-1])
    options = {"asymmetric_quantize_inputs": asymmetric}
    return b.build([b.add("batch_matmul", [left, right], output, FLOAT32, **options)])


@pytest.mark.parametrize("scale", [0.011, 0.013, 0.017])
def test_asymmetric_rows_with_weights_computed_at_run_time(oracle, scale):
    """TFLite keeps the sums of the first invocation's weights: each model here is invoked once."""
    graph = hybrid((2, 4, 5), (2, 5, 6), True, scale, constant=False)
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(3), graph, 1))


def test_sums_of_weights_that_tflite_does_not_write():
    with pytest.raises(UnsupportedError, match="sums up 2 of their matrices"):
        lower(hybrid((3, 1, 2, 4, 5), (3, 1, 2, 5, 6), True))


def test_a_long_sum(oracle):
    shapes = ((2, 3000), (3000, 2), (2, 2), {"adj_x": False, "adj_y": False})
    for dtype in (INT8, FLOAT32):
        q = affine(INT8, 0.01, -128) if dtype is INT8 else None
        graph = batch_matmul(shapes, (dtype, q), (dtype, q), (dtype, affine(INT8, 20) if q else None))
        check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(1), graph, 3))


@pytest.mark.parametrize("depth", [33020, 33040])
def test_a_sum_of_int8_wraps_int32(oracle, depth):
    """255 * 255 * 33026 is the first product of ends beyond 2^31."""
    shapes = ((2, depth), (depth, 2), (2, 2), {"adj_x": False, "adj_y": False})
    graph = batch_matmul(shapes, *[(INT8, affine(INT8, 0.5, 127))] * 2, (INT8, affine(INT8, 2.0**23, -3)))
    ours = check_against_oracle(oracle, graph, [np.full((1, *shape), -128, np.int8) for shape in shapes[:2]])
    assert {int(y) for y in ours[graph.outputs[0]].reshape(-1)} == {61 if depth < 33026 else -67}


def test_refusals():
    plain = (FLOAT32, None)
    with pytest.raises(GraphError, match="do not multiply"):
        lower(batch_matmul(((2, 3), (2, 3), (2, 3), {}), plain, plain, plain))
    q = (INT16, affine(INT16, 1, 3))
    with pytest.raises(UnsupportedError, match="takes 0 only"):
        lower(batch_matmul(((2, 3), (3, 2), (2, 2), {}), q, q, q))


@pytest.mark.parametrize("dtype", [INT8, INT16])
def test_weights_of_several_scales_give_the_zero_point(oracle, dtype):
    """TFLite reads the one scale that older files have, 0 there."""
    rng = np.random.default_rng(3)
    b = GraphBuilder()
    q = affine(dtype, 0.1)
    x = b.input("x", (2, 4), dtype, q)
    scales = Affine(np.array([0.1, 0.2, 0.3], np.float32), np.zeros(3, np.int64), 1)
    w = b.constant("w", rng.integers(-127, 128, (4, 3)).astype(np.int8), scales)
    y = b.add("batch_matmul", [x, w], (2, 3), dtype, q, adj_x=False, adj_y=False, asymmetric_quantize_inputs=False)
    check_against_oracle(oracle, b.build([y]), [rng.integers(-100, 100, (3, 2, 4)).astype(dtype.storage)])


@pytest.mark.parametrize(
    ("stack", "fits"), [((2, 2, 2), True), ((3, 2, 2), False), ((2, 2, 3), True), ((4, 2, 2), False)]
)
def test_sums_of_weights_of_five_axes(oracle, stack, fits):
    """TFLite sums up as many matrices as the inner two axes of the stack hold, and looks for the sum at a + b + c."""
    rng, b = np.random.default_rng(6), GraphBuilder("batch_matmul")
    weights = rng.integers(-127, 128, (*stack, 5, 4)).astype(np.int8)
    operands = [b.input("x", (*stack, 3, 5), FLOAT32), b.constant("w", weights, affine(INT8, 0.02))]
    options = {"version": 4, "asymmetric_quantize_inputs": True}
    graph = b.build([b.add("batch_matmul", operands, (*stack, 3, 4), FLOAT32, **options)])
    if fits:
        check_against_oracle(oracle, graph, random_inputs(rng, graph, 1))
        return
    with pytest.raises(UnsupportedError, match="TFLite sums up 4 of their matrices and reads on"):
        lower(graph)
