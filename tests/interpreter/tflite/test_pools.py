"""AVERAGE_POOL_2D and MAX_POOL_2D against TFLite."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.draw import activations, affine, kernel_settings, quantizations, seeds
from tests.support.layers import Geometry, geometries, pool_graph
from tests.support.single_op import check_against_oracle, random_inputs
from tests.support.types import INT8, QUANTIZED
from tflq.errors import GraphError, UnsupportedError
from tflq.graph import DType, GraphBuilder
from tflq.interpreter import lower


@pytest.mark.parametrize("operator", ["average_pool_2d", "max_pool_2d"])
@pytest.mark.parametrize("dtype", QUANTIZED)
@kernel_settings
@given(data=st.data(), where=geometries(1), channels=st.integers(1, 5), activation=activations, seed=seeds)
def test_against_tflite(oracle, operator, dtype, data, where, channels, activation, seed):
    graph = pool_graph(operator, dtype, data.draw(quantizations(dtype)), where, channels, activation)
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(seed), graph, 5))


@pytest.mark.parametrize("kernel", [(2, 1), (4, 5), (25, 5), (16, 16)])
def test_every_sum_of_equal_codes_and_ties(oracle, kernel):
    """Quantized values that differ by one in half of the taps make exact ties."""
    where = Geometry(kernel, kernel, (1, 1), (1, 1), "valid")
    graph = pool_graph("average_pool_2d", INT8, affine(INT8, 0.1, 3), where, 1, "none")
    base = np.arange(-128, 127, dtype=np.int8)[:, None]
    half = np.arange(kernel[0] * kernel[1]) % 2
    check_against_oracle(oracle, graph, [(base + half.astype(np.int8)).reshape(-1, 1, *kernel, 1)])


def test_types_of_input_and_output_must_be_equal():
    b = GraphBuilder()
    x = b.input("x", (1, 4, 4, 1), INT8, affine(INT8, 0.1))
    attributes = {"padding": "same", "stride_h": 1, "stride_w": 1, "filter_height": 2, "filter_width": 2}
    y = b.add("average_pool_2d", [x], (1, 4, 4, 1), DType.UINT8, affine(DType.UINT8, 0.1), **attributes)
    with pytest.raises(UnsupportedError, match="equal types"):
        lower(b.build([y]))


@pytest.mark.parametrize(("shape", "filter_height"), [((4, 4, 1), 2), ((1, 4, 4, 1), 0), ((1, 4, 4, 1), 5)])
def test_refused_shapes(shape, filter_height):
    b = GraphBuilder()
    x = b.input("x", shape, INT8, affine(INT8, 0.1))
    attributes = {"padding": "valid", "stride_h": 1, "stride_w": 1, "filter_width": 2}
    y = b.add("average_pool_2d", [x], shape, INT8, affine(INT8, 0.1), filter_height=filter_height, **attributes)
    with pytest.raises(GraphError):
        lower(b.build([y]))
