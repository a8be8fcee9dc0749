"""FULLY_CONNECTED against TFLite."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.converters.tflite.test_sparsity import CSR, DENSE, Layout, sparsify
from tests.support.draw import affine, kernel_settings
from tests.support.layers import Weighted, weighted, weighted_graph
from tests.support.single_op import check_against_oracle, random_inputs
from tests.support.types import FLOAT32, INT8, INT16, UINT8
from tflq.converters.tflite import model_to_bytes
from tflq.converters.tflite.extras import TensorExtra
from tflq.errors import GraphError, OracleError, UnsupportedError
from tflq.graph import Affine, DType, GraphBuilder
from tflq.interpreter import lower

INT4, INT32, INT64 = DType.INT4, DType.INT32, DType.INT64
KINDS = [
    (INT8, DType.INT8, INT32),
    (INT8, DType.INT8, None),
    (INT8, INT4, INT32),
    (UINT8, UINT8, INT32),
    (UINT8, UINT8, None),
    (INT16, DType.INT8, INT64),
    (INT16, DType.INT8, INT32),
    (INT16, DType.INT8, None),
    (INT16, INT16, INT64),
    (INT16, INT16, INT32),
    (INT16, INT16, None),
]


def graph_of(how, rows, depth, outputs, keep=False):
    shape = (*rows, depth)
    flat = int(np.prod(rows))
    output = (*rows, outputs) if keep else (flat, outputs)
    stated = {}
    if how.dtype is INT16 and how.bias_dtype is not None:
        stated = {"quantized_bias_type": how.bias_dtype.value}
    return weighted_graph("fully_connected", how, shape, (outputs, depth), output, 0, keep_num_dims=keep, **stated)


@pytest.mark.parametrize(("dtype", "weights_dtype", "bias_dtype"), KINDS)
@kernel_settings
@given(
    data=st.data(),
    rows=st.lists(st.integers(1, 3), min_size=1, max_size=3),
    depth=st.integers(1, 70),
    outputs=st.integers(1, 20),
    keep=st.booleans(),
)
def test_against_tflite(oracle, dtype, weights_dtype, bias_dtype, data, rows, depth, outputs, keep):
    how = data.draw(weighted(dtype, weights_dtype, bias_dtype))
    graph = graph_of(how, rows, depth, outputs, keep)
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(how.seed), graph, 20))


@pytest.mark.parametrize("zero_point", [-128, -1, 100])
def test_int8_weights_with_a_zero_point(oracle, zero_point):
    """Per tensor, the reference kernel takes the weights' zero point off; per channel it does not look at it."""
    how = Weighted(INT8, DType.INT8, INT32, weights_zero_point=zero_point, input_zero_point=7, spread=4.0)
    graph = graph_of(how, (2,), 30, 10)
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(1), graph, 50))


@pytest.mark.parametrize("outputs", [1, 10, 640])
def test_sizes_of_real_layers(oracle, outputs):
    how = Weighted(INT8, DType.INT8, INT32, spread=0.5, zero_point=12, input_zero_point=-128, seed=outputs)
    graph = graph_of(how, (1,), 640, outputs)
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(outputs), graph, 100))


def test_totals_that_do_not_fit_int32_once_scaled(oracle):
    """static_cast<int32_t> of a double out of range gives -2^31 on x86."""
    b = GraphBuilder()
    x = b.input("x", (1, 8), INT8, affine(INT8, 2.0**20, 3))
    weights = b.constant("w", np.arange(-40, 40).reshape(10, 8).astype(np.int8), affine(INT8, 2.0**10))
    graph = b.build([b.add("fully_connected", [x, weights], (1, 10), INT8, affine(INT8, 0.5, -3))])
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(0), graph, 50))


def test_weights_computed_at_run_time(oracle):
    b = GraphBuilder()
    x = b.input("x", (2, 12), INT8, affine(INT8, 0.5, 3))
    weights = b.input("w", (5, 12), INT8, affine(INT8, 0.01))
    graph = b.build([b.add("fully_connected", [x, weights], (2, 5), INT8, affine(INT8, 2.0, -3))])
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(0), graph, 4))


@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("block", [1, 4, 16])
def test_sparse_int8_weights(oracle, per_channel, block):
    """In blocks of 1 x 16 they meet the kernel that multiplies in fixed point; TFLite refuses others."""
    layout = Layout((0, 1), {1: block} if block > 1 else {}, (DENSE, CSR), np.int32)
    how = Weighted(INT8, DType.INT8, INT32, per_channel, spread=0.25, zero_point=5, input_zero_point=-9)
    graph = graph_of(how, (3,), 64, 20)
    weights = graph.tensors[1]
    codes = weights.data * (np.arange(64) // 16 % 3 != 1).astype(np.int8)
    graph.tensors[1] = stored_sparsely(replace(weights, data=codes), layout)
    check_or_refuse(oracle, graph, block)


@pytest.mark.parametrize("asymmetric", [False, True])
@pytest.mark.parametrize("per_channel", [False, True])
def test_sparse_weights_of_hybrid_layers(oracle, per_channel, asymmetric):
    rng = np.random.default_rng(3)
    codes = (rng.integers(-127, 128, (20, 64)) * (np.arange(64) // 16 % 3 != 1)).astype(np.int8)
    scale = rng.uniform(0.01, 0.03, 20 if per_channel else 1).astype(np.float32)
    q = Affine(scale, np.zeros(scale.size, np.int64), 0 if per_channel else None)
    b = GraphBuilder()
    operands = [b.input("x", (3, 64), FLOAT32), b.constant("w", codes, q)]
    operands.append(b.constant("b", rng.normal(size=20).astype(np.float32)))
    options = {"asymmetric_quantize_inputs": asymmetric}
    graph = b.build([b.add("fully_connected", operands, (3, 20), FLOAT32, version=9, **options)])
    graph.tensors[1] = stored_sparsely(graph.tensors[1], Layout((0, 1), {1: 16}, (DENSE, CSR), np.int32))
    check_against_oracle(oracle, graph, random_inputs(rng, graph, 20))


def stored_sparsely(tensor, layout):
    table, stored = sparsify(tensor.data, layout)
    return replace(tensor, extra=TensorExtra(table, stored.tobytes()))


def check_or_refuse(oracle, graph, block):
    inputs = random_inputs(np.random.default_rng(block), graph, 100)
    if block == 16:
        check_against_oracle(oracle, graph, inputs)
        return
    with pytest.raises(OracleError):
        oracle.run(model_to_bytes(graph), inputs)
    with pytest.raises(UnsupportedError, match="store them densely"):
        lower(graph)


def shuffled_graph(rows=(4,), depth=32, outputs=8, workspace=None, bias=True, activation="relu"):
    rng = np.random.default_rng(depth)
    b = GraphBuilder()
    x = b.input("x", (*rows, depth), UINT8, affine(UINT8, 0.01, 128))
    weights = rng.integers(0, 255, (outputs, depth), np.uint8, endpoint=True)
    operands = [x, b.constant("w", weights, affine(UINT8, 0.02, 128))]
    if bias:
        values = rng.integers(-9999, 9999, outputs).astype(np.int32)
        operands.append(b.constant("b", values, affine(INT32, 0.0002)))
    y = b.tensor("y", (int(np.prod(rows)), outputs), INT16, affine(INT16, 2.0**-12, 77))
    space = b.tensor("space", workspace or (int(np.prod(rows)), depth), UINT8)
    options = {"weights_format": "shuffled4x16int8", "fused_activation_function": activation}
    b.node("fully_connected", operands, [y, space], 2, **options)
    return b.build([y, space])


@pytest.mark.parametrize("rows", [(1,), (4,), (2, 2)])
@pytest.mark.parametrize("activation", ["none", "relu", "relu6"])
def test_shuffled_weights(oracle, rows, activation):
    graph = shuffled_graph(rows, activation=activation)
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(0), graph, 50))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rows": (3,)}, "1 or 4 rows"),
        ({"depth": 24}, "multiple of"),
        ({"outputs": 6}, "multiple of"),
        ({"workspace": (1, 5)}, "an output for those"),
        ({"bias": False}, "without a bias"),
    ],
)
def test_shuffled_weights_that_do_not_fit(changes, message):
    with pytest.raises((GraphError, UnsupportedError), match=message):
        lower(shuffled_graph(**changes))


@pytest.mark.parametrize("zero_point", [0, 100])
@pytest.mark.parametrize("activation", ["none", "relu6"])
def test_uint8_to_int16(oracle, zero_point, activation):
    rng = np.random.default_rng(5)
    b = GraphBuilder()
    x = b.input("x", (3, 40), UINT8, affine(UINT8, 0.02, 120))
    weights = b.constant("w", rng.integers(0, 255, (7, 40), np.uint8), affine(UINT8, 0.01, 131))
    bias = b.constant("b", rng.integers(-9999, 9999, 7).astype(np.int32), affine(INT32, 0.0002))
    operands, q = [x, weights, bias], affine(INT16, 2.0**-11, zero_point)
    result = b.add("fully_connected", operands, (3, 7), INT16, q, fused_activation_function=activation)
    graph = b.build([result])
    check_against_oracle(oracle, graph, random_inputs(rng, graph, 50))


def refused(x_shape=(2, 12), bias_dtype=INT32, dtype=INT8, **attributes):
    b = GraphBuilder()
    x = b.input("x", x_shape, dtype, affine(dtype, 0.5))
    weights = b.constant("w", np.ones((5, 12), np.int8), affine(INT8, 0.01))
    bias = b.constant("b", np.zeros(5, bias_dtype.storage), affine(INT32, 0.005))
    return b.build([b.add("fully_connected", [x, weights, bias], (2, 5), dtype, affine(dtype, 2.0), **attributes)])


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"x_shape": (2, 7)}, GraphError, "does not fall into rows"),
        ({"x_shape": (4, 6), "keep_num_dims": True}, GraphError, "must end with 12"),
        ({"weights_format": "shuffled4x16int8"}, UnsupportedError, "without a bias and a second output"),
        ({"bias_dtype": INT64}, UnsupportedError, "takes int32"),
        ({"dtype": INT16}, UnsupportedError, "takes int64"),
    ],
)
def test_refusals(changes, error, message):
    with pytest.raises(error, match=message):
        lower(refused(**changes))


@pytest.mark.parametrize(("kind", "depth"), [("int8", 33030), ("int16", 530)])
@pytest.mark.parametrize("beyond", [False, True])
def test_sums_of_32_bits_wrap(oracle, kind, depth, beyond):
    """Of int16 with an int32 bias, too: a little more than 2^31 becomes a little more than -2^31."""
    dtype = DType(kind)
    b, top = GraphBuilder("wide"), dtype.maximum
    zero = -128 if kind == "int8" else 0
    x = b.input("x", (1, depth), dtype, affine(dtype, 2.0**-7, zero))
    weights = np.full((2, depth), 127 if beyond else 121, np.int8)
    weights[1] = -weights[1]
    w = b.constant("w", weights, affine(INT8, 2.0**-7))
    bias = b.constant("b", np.array([99, -99], np.int32), affine(DType.INT32, 2.0**-14))
    attributes = {} if kind == "int8" else {"quantized_bias_type": "int32"}
    rule = affine(dtype, 2.0**11 if kind == "int8" else 2.0**3)
    graph = b.build([b.add("fully_connected", [x, w, bias], (1, 2), dtype, rule, version=11, **attributes)])
    codes = np.full((2, 1, depth), top, dtype.storage)
    codes[1, :, ::2] -= 3
    found = check_against_oracle(oracle, graph, [codes])
    assert (found[graph.outputs[0]][0, 0, 0] < 0) == (beyond and kind == "int16")
