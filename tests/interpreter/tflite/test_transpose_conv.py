"""TRANSPOSE_CONV against TFLite."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.draw import affine, kernel_settings, scales, seeds, zero_points
from tests.support.single_op import check_against_oracle, random_inputs
from tests.support.types import FLOAT32, INT8, INT16, UINT8
from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Affine, Array, Attribute, DType, Graph, GraphBuilder
from tflq.interpreter import lower


@st.composite
def geometries(draw):
    """Input size, kernel, strides, padding, and an output size that a convolution would turn into the input's."""
    size = [draw(st.integers(1, 5)) for _ in range(2)]
    kernel = [draw(st.integers(1, 4)) for _ in range(2)]
    stride = [draw(st.integers(1, 3)) for _ in range(2)]
    padding = draw(st.sampled_from(["same", "valid"]))
    if padding == "same":
        output = [n * s - draw(st.integers(0, s - 1)) for n, s in zip(size, stride, strict=True)]
    else:
        output = [(n - 1) * s + k for n, s, k in zip(size, stride, kernel, strict=True)]
    return size, kernel, stride, padding, output


def transpose_conv(
    geometry: tuple[list[int], list[int], list[int], str, list[int]],
    x: tuple[DType, Affine | None],
    weights: tuple[DType, Affine | None, Array],
    output: tuple[DType, Affine | None],
    bias: Array | None = None,
    constant: bool = True,
    **options: Attribute,
) -> Graph:
    """Build the graph; x, weights and output are (dtype, quantization), weights and bias also carry values."""
    size, _, stride, padding, output_size = geometry
    b = GraphBuilder("transpose_conv")
    outputs, channels = weights[2].shape[0], weights[2].shape[3]
    shape = (2, *output_size, outputs)
    source = b.input("x", (2, *size, channels), *x)
    held = b.constant("weights", weights[2], weights[1]) if constant else b.input("w", weights[2].shape, *weights[:2])
    operands = [b.constant("shape", np.array(shape, np.int32)), held, source]
    if bias is not None:
        stated = None
        if x[1] is not None and weights[1] is not None:
            stated = Affine.per_tensor(x[1].scale[0] * weights[1].scale[0], 0, bias.itemsize * 8)
        operands.append(b.constant("bias", bias, stated))
    options = {"padding": padding, "stride_h": stride[0], "stride_w": stride[1], **options}
    return b.build([b.add("transpose_conv", operands, shape, *output, **options)])


@pytest.mark.parametrize("dtype", [INT8, UINT8])
@kernel_settings
@given(data=st.data(), geometry=geometries(), seed=seeds, si=scales(-6, 0), so=scales(-4, 2), relu=st.booleans())
def test_8_bits(oracle, dtype, data, geometry, seed, si, so, relu):
    rng = np.random.default_rng(seed)
    values = rng.integers(dtype.minimum, dtype.maximum, (3, *geometry[1], 5), dtype.storage, endpoint=True)
    per_channel = Affine(rng.uniform(0.001, 0.02, 3).astype(np.float32), np.zeros(3, np.int64), 0)
    quantization = per_channel if dtype is INT8 else affine(UINT8, 0.01, data.draw(zero_points(UINT8)))
    source, target = (affine(dtype, s, data.draw(zero_points(dtype))) for s in (si, so))
    bias = rng.integers(-5000, 5000, 3).astype(np.int32) if data.draw(st.booleans()) else None
    options = {"fused_activation_function": "relu" if relu else "none"}
    graph = transpose_conv(geometry, (dtype, source), (dtype, quantization, values), (dtype, target), bias, **options)
    check_against_oracle(oracle, graph, random_inputs(rng, graph, 3))


@pytest.mark.parametrize("bias_type", [None, np.int32, np.int64])
@kernel_settings
@given(geometry=geometries(), seed=seeds, si=scales(-12, -8), so=scales(-8, -2))
def test_int16(oracle, bias_type, geometry, seed, si, so):
    rng = np.random.default_rng(seed)
    values = rng.integers(-127, 128, (3, *geometry[1], 5), np.int8)
    bias = None if bias_type is None else rng.integers(-50000, 50000, 3).astype(bias_type)
    options = {"quantized_bias_type": "int32"} if bias_type is np.int32 else {}
    sides = (INT16, affine(INT16, si)), (INT8, affine(INT8, 0.01), values), (INT16, affine(INT16, so))
    graph = transpose_conv(geometry, *sides, bias, **options)
    check_against_oracle(oracle, graph, random_inputs(rng, graph, 3))


@kernel_settings
@given(geometry=geometries(), seed=seeds, relu=st.booleans(), with_bias=st.booleans())
def test_float32_in_order(oracle, geometry, seed, relu, with_bias):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(3, *geometry[1], 5)).astype(np.float32)
    b = rng.normal(size=3).astype(np.float32) if with_bias else None
    options = {"fused_activation_function": "relu6" if relu else "none"}
    graph = transpose_conv(geometry, (FLOAT32, None), (FLOAT32, None, values), (FLOAT32, None), b, **options)
    check_against_oracle(oracle, graph, random_inputs(rng, graph, 3))


@kernel_settings
@given(geometry=geometries(), seed=seeds, per_channel=st.booleans(), with_bias=st.booleans())
def test_float32_with_int8_weights(oracle, geometry, seed, per_channel, with_bias):
    rng = np.random.default_rng(seed)
    values = rng.integers(-127, 128, (3, *geometry[1], 5)).astype(np.int8)
    each = Affine(rng.uniform(0.001, 0.02, 3).astype(np.float32), np.zeros(3, np.int64), 0)
    bias = rng.normal(size=3).astype(np.float32) if with_bias else None
    quantization = each if per_channel else affine(INT8, 0.01)
    graph = transpose_conv(geometry, (FLOAT32, None), (INT8, quantization, values), (FLOAT32, None), bias)
    check_against_oracle(oracle, graph, random_inputs(rng, graph, 3))


@pytest.mark.parametrize("dtype", [INT8, FLOAT32])
def test_weights_computed_at_run_time(oracle, dtype):
    quantization = affine(INT8, 0.02) if dtype is INT8 else None
    values = np.zeros((3, 2, 3, 5), dtype.storage)
    geometry = ([4, 4], [2, 3], [2, 2], "same", [8, 8])
    sides = (dtype, quantization), (dtype, quantization, values), (dtype, quantization)
    graph = transpose_conv(geometry, *sides, constant=False)
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(1), graph, 3))


def test_refusals():
    geometry = ([4, 4], [2, 2], [2, 2], "same", [8, 8])
    q = (INT8, affine(INT8, 0.1))
    graph = transpose_conv(geometry, q, (*q, np.zeros((3, 2, 2, 5), np.int8)), q)
    x = graph.inputs[0]
    graph.tensors[x] = replace(graph.tensors[x], shape=(2, 4, 4, 6))
    with pytest.raises(GraphError, match="do not lead from an input"):
        lower(graph)
    q = (UINT8, affine(UINT8, 0.1))
    graph = transpose_conv(geometry, q, (*q, np.zeros((3, 2, 2, 5), np.uint8)), q, np.zeros(3, np.int32))
    bias = graph.nodes[0].inputs[3]
    graph.tensors[bias] = replace(graph.tensors[bias], quantization=affine(DType.INT32, 0.5))
    with pytest.raises(UnsupportedError, match=r"input and weights give 0\.01"):
        lower(graph)
