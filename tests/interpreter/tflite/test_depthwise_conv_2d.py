"""DEPTHWISE_CONV_2D against TFLite."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.draw import INT8, INT16, UINT8, affine, kernel_settings
from tests.support.layers import Geometry, Weighted, depthwise_graph, geometries, weighted
from tests.support.single_op import check_against_oracle, random_inputs
from tflq.errors import GraphError
from tflq.graph import DType, GraphBuilder
from tflq.interpreter import lower

KINDS = [
    (INT8, DType.INT8, DType.INT32),
    (INT8, DType.INT4, DType.INT32),
    (UINT8, UINT8, DType.INT32),
    (INT16, DType.INT8, DType.INT64),
]


@pytest.mark.parametrize(("dtype", "weights_dtype", "bias_dtype"), KINDS)
@kernel_settings
@given(
    data=st.data(),
    where=geometries(),
    batch=st.integers(1, 2),
    channels=st.integers(1, 5),
    multiplier=st.integers(1, 3),
)
def test_against_tflite(oracle, dtype, weights_dtype, bias_dtype, data, where, batch, channels, multiplier):
    how = data.draw(weighted(dtype, weights_dtype, bias_dtype))
    graph = depthwise_graph(how, where, batch, channels, multiplier)
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(how.seed), graph, 3))


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("size", [(25, 5), (12, 12), (3, 3), (1, 1)])
@pytest.mark.parametrize("channels", [8, 64, 100])
def test_sizes_of_real_layers(oracle, stride, size, channels):
    where = Geometry(size, (3, 3), (stride, stride), (1, 1), "same")
    how = Weighted(INT8, DType.INT8, DType.INT32, True, 1.0, -128, -9, 0, "relu", channels)
    graph = depthwise_graph(how, where, 1, channels, 1)
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(channels), graph, 70))


def test_the_multiplier_follows_from_the_shapes(oracle):
    """The reference kernel ignores what the attribute says."""
    where = Geometry((4, 4), (2, 2), (1, 1), (1, 1), "same")
    graph = depthwise_graph(Weighted(INT8, DType.INT8, DType.INT32), where, 1, 2, 3)
    node = graph.nodes[0]
    lying = type(node)(node.operator, node.inputs, node.outputs, node.attributes.updated(depth_multiplier=1), node.name)
    graph.nodes[0] = lying
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(0), graph, 3))


def test_weights_that_do_not_fit_are_refused():
    b = GraphBuilder()
    x = b.input("x", (1, 4, 4, 3), INT8, affine(INT8, 0.5))
    weights = b.constant("w", np.ones((1, 2, 2, 4), np.int8), affine(INT8, 0.01))
    attributes = {"padding": "same", "stride_h": 1, "stride_w": 1}
    graph = b.build([b.add("depthwise_conv_2d", [x, weights], (1, 4, 4, 4), INT8, affine(INT8, 1.0), **attributes)])
    with pytest.raises(GraphError, match="do not fit 3 input channels"):
        lower(graph)
