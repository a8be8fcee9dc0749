"""CONV_2D and DEPTHWISE_CONV_2D against TFLite."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.draw import affine, kernel_settings
from tests.support.layers import Geometry, Weighted, conv_graph, depthwise_graph, geometries, weighted
from tests.support.single_op import check_against_oracle, random_inputs
from tests.support.types import INT8, INT16, UINT8
from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Affine, DType, GraphBuilder
from tflq.interpreter import lower

INT4, INT32, INT64 = DType.INT4, DType.INT32, DType.INT64
KINDS = [
    (INT8, DType.INT8, INT32),
    (INT8, INT4, INT32),
    (UINT8, UINT8, INT32),
    (INT16, DType.INT8, INT64),
    (INT16, DType.INT8, INT32),
]
DEPTHWISE_KINDS = KINDS[:-1]  # int16 has int64 accumulators only
SAMPLES = 3


@pytest.mark.parametrize(("dtype", "weights_dtype", "bias_dtype"), KINDS)
@kernel_settings
@given(data=st.data(), where=geometries(), batch=st.integers(1, 2), depth=st.integers(1, 4), outputs=st.integers(1, 6))
def test_dense(oracle, dtype, weights_dtype, bias_dtype, data, where, batch, depth, outputs):
    how = data.draw(weighted(dtype, weights_dtype, bias_dtype))
    graph = conv_graph(how, where, batch, depth, 1, outputs)
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(how.seed), graph, SAMPLES))


@pytest.mark.parametrize(("dtype", "weights_dtype", "bias_dtype"), KINDS)
@kernel_settings
@given(data=st.data(), where=geometries(), depth=st.integers(1, 3), groups=st.integers(2, 4), outputs=st.integers(1, 3))
def test_groups(oracle, dtype, weights_dtype, bias_dtype, data, where, depth, groups, outputs):
    how = data.draw(weighted(dtype, weights_dtype, bias_dtype))
    graph = conv_graph(how, where, 1, depth, groups, outputs)
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(how.seed), graph, SAMPLES))


@pytest.mark.parametrize("channels", [3, 16, 40])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("kernel", [(1, 1), (3, 3), (10, 4)])
def test_sizes_of_real_layers(oracle, channels, stride, kernel):
    where = Geometry((24, 20), kernel, (stride, stride), (1, 1), "same")
    how = Weighted(INT8, DType.INT8, INT32, True, 1.0, -128, -7, 0, "relu6", channels)
    graph = conv_graph(how, where, 1, channels, 1, 32)
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(channels), graph, 8))


def test_accumulators_that_wrap_int32(oracle):
    """Biases near 2^31 push totals over the edge: int32 wraps, and no proven map may hide it."""
    b = GraphBuilder()
    x = b.input("x", (1, 4, 4, 4), INT8, affine(INT8, 0.5, 3))
    weights = b.constant("w", np.full((4, 1, 1, 4), 127, np.int8), affine(INT8, 0.01))
    bias = b.constant("b", np.array([2**31 - 1, -(2**31), 2**31 - 60000, 5], np.int32), affine(INT32, 0.005))
    attributes = {"padding": "valid", "stride_h": 1, "stride_w": 1}
    y = b.add("conv_2d", [x, weights, bias], (1, 4, 4, 4), INT8, affine(INT8, 2.0**17, -3), **attributes)
    graph = b.build([y])
    lowered = lower(graph).nodes[0].params
    assert lowered.constants.rescale.step_map is None
    results = check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(0), graph, 50))
    assert {int(v) for v in np.unique(results[y][..., 0])} == {-85, 79}  # both sides of the edge were seen


def test_left_shifts_that_wrap_int32(oracle):
    """A scale ratio above 1 shifts left; large totals lose their high bits there, as in C."""
    b = GraphBuilder()
    x = b.input("x", (1, 4, 4, 64), INT8, affine(INT8, 64.0, 3))
    weights = b.constant("w", np.full((2, 1, 1, 64), 127, np.int8), affine(INT8, 64.0))
    bias = b.constant("b", np.array([10**6, -(10**6)], np.int32), affine(INT32, 4096.0))
    attributes = {"padding": "valid", "stride_h": 1, "stride_w": 1}
    y = b.add("conv_2d", [x, weights, bias], (1, 4, 4, 2), INT8, affine(INT8, 0.5, -3), **attributes)
    graph = b.build([y])
    results = check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(0), graph, 50))
    assert len(np.unique(results[y])) >= 2


def test_weights_computed_at_run_time(oracle):
    """Weights that are a graph input: each sample has its own."""
    b = GraphBuilder()
    x = b.input("x", (1, 5, 5, 2), INT8, affine(INT8, 0.5, 3))
    weights = b.input("w", (3, 3, 3, 2), INT8, affine(INT8, 0.01))
    bias = b.constant("b", np.array([100, -200, 5], np.int32), affine(INT32, 0.005))
    attributes = {"padding": "same", "stride_h": 1, "stride_w": 1}
    graph = b.build([b.add("conv_2d", [x, weights, bias], (1, 5, 5, 3), INT8, affine(INT8, 1.5, -3), **attributes)])
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(0), graph, 4))


def small(dtype=INT8, weights_zero_point=0, weights_shape=(2, 1, 1, 3), bias_dtype=INT32, padding="same", scales=1):
    b = GraphBuilder()
    x = b.input("x", (1, 4, 4, 3), dtype, affine(dtype, 0.5))
    kind = UINT8 if dtype is UINT8 else INT8
    axis = 3 if scales == 3 else 0  # as many scales as input channels
    quantization = Affine(np.full(scales, 0.01, np.float32), np.full(scales, weights_zero_point), axis)
    weights = b.constant("w", np.ones(weights_shape, kind.storage), quantization)
    bias = b.constant("b", np.zeros(weights_shape[0], bias_dtype.storage), affine(INT32, 0.005))
    attributes = {"padding": padding, "stride_h": 1, "stride_w": 1}
    y = b.add("conv_2d", [x, weights, bias], (1, 4, 4, weights_shape[0]), dtype, affine(dtype, 1.0), **attributes)
    return b.build([y])


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"weights_zero_point": 5}, UnsupportedError, "zero point other than 0"),
        ({"bias_dtype": INT64}, UnsupportedError, "takes int32"),
        ({"dtype": INT16}, UnsupportedError, "takes int64"),
        ({"weights_shape": (2, 1, 1, 2)}, GraphError, "do not fit 3 input channels"),
        ({"weights_shape": (2, 5, 5, 3), "padding": "valid"}, GraphError, "does not fit an input"),
        ({"padding": "reflect"}, UnsupportedError, "known are same, valid"),
        ({"scales": 3}, GraphError, "3 scales"),
    ],
)
def test_refusals(changes, error, message):
    with pytest.raises(error, match=message) as caught:
        lower(small(**changes))
    assert str(caught.value).startswith("operator 0 (conv_2d")


@pytest.mark.parametrize(("dtype", "weights_dtype", "bias_dtype"), DEPTHWISE_KINDS)
@kernel_settings
@given(
    data=st.data(),
    where=geometries(),
    batch=st.integers(1, 2),
    channels=st.integers(1, 5),
    multiplier=st.integers(1, 3),
)
def test_depthwise(oracle, dtype, weights_dtype, bias_dtype, data, where, batch, channels, multiplier):
    how = data.draw(weighted(dtype, weights_dtype, bias_dtype))
    graph = depthwise_graph(how, where, batch, channels, multiplier)
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(how.seed), graph, SAMPLES))


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("size", [(25, 5), (12, 12), (3, 3), (1, 1)])
@pytest.mark.parametrize("channels", [8, 64, 100])
def test_sizes_of_real_depthwise_layers(oracle, stride, size, channels):
    where = Geometry(size, (3, 3), (stride, stride), (1, 1), "same")
    how = Weighted(INT8, DType.INT8, INT32, True, 1.0, -128, -9, 0, "relu", channels)
    graph = depthwise_graph(how, where, 1, channels, 1)
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(channels), graph, 70))


def test_the_depth_multiplier_follows_from_the_shapes(oracle):
    """The reference kernel ignores what the attribute says."""
    where = Geometry((4, 4), (2, 2), (1, 1), (1, 1), "same")
    graph = depthwise_graph(Weighted(INT8, DType.INT8, INT32), where, 1, 2, 3)
    node = graph.nodes[0]
    lying = type(node)(node.operator, node.inputs, node.outputs, node.attributes.updated(depth_multiplier=1), node.name)
    graph.nodes[0] = lying
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(0), graph, 3))


def test_depthwise_weights_that_do_not_fit_are_refused():
    b = GraphBuilder()
    x = b.input("x", (1, 4, 4, 3), INT8, affine(INT8, 0.5))
    weights = b.constant("w", np.ones((1, 2, 2, 4), np.int8), affine(INT8, 0.01))
    attributes = {"padding": "same", "stride_h": 1, "stride_w": 1}
    graph = b.build([b.add("depthwise_conv_2d", [x, weights], (1, 4, 4, 4), INT8, affine(INT8, 1.0), **attributes)])
    with pytest.raises(GraphError, match="do not fit 3 input channels"):
        lower(graph)
