"""Layers whose weights and biases are computed: each sample has its own, against TFLite."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.interpreter.tflite.test_hybrid import hybrid_graph
from tests.interpreter.tflite.test_transpose_conv import transpose_conv
from tests.support.draw import affine
from tests.support.layers import Geometry, Weighted, conv_graph, depthwise_graph, weighted_graph
from tests.support.single_op import check_against_oracle, random_inputs
from tests.support.types import FLOAT32, INT8, INT16, UINT8
from tflq.graph import Array, DType, Graph
from tflq.oracle import Oracle

INT32, INT64 = DType.INT32, DType.INT64
SAMPLES = 3
WHERE = Geometry((5, 4), (3, 2), (1, 2), (1, 1), "same")
Make = Callable[[], Graph]


def weights_of(dtype: DType, bias: DType | None, per_channel: bool = False, weights: DType = INT8) -> Weighted:
    zero = 131 if dtype is UINT8 else 0
    return Weighted(dtype, UINT8 if dtype is UINT8 else weights, bias, per_channel, 1.0, 0 if dtype is INT16 else 9,
                    0 if dtype is INT16 else 21, zero, seed=5)  # fmt: skip


def convolution(dtype: DType, bias: DType | None, groups: int = 1, per_channel: bool = False) -> Make:
    return lambda: conv_graph(weights_of(dtype, bias, per_channel), WHERE, 2, 3, groups, 5)


def depthwise(dtype: DType, bias: DType | None) -> Make:
    return lambda: depthwise_graph(weights_of(dtype, bias), WHERE, 2, 3, 2)


def fully_connected(dtype: DType, bias: DType | None, weights: DType = INT8, keep: bool = False) -> Make:
    how = weights_of(dtype, bias, weights=weights)
    stated: dict[str, Any] = {"quantized_bias_type": "int64"} if bias is INT64 else {}
    output = (2, 3, 7) if keep else (6, 7)
    return lambda: weighted_graph("fully_connected", how, (2, 3, 20), (7, 20), output, keep_num_dims=keep, **stated)


def transposed(dtype: DType, bias: type[np.generic] | None, kind: DType = INT8) -> Make:
    def make() -> Graph:
        rng = np.random.default_rng(8)
        quantization = affine(kind, 0.01, 131 if kind is UINT8 else 0)
        codes = rng.integers(kind.minimum + 1, kind.maximum, (3, 2, 3, 4), kind.storage)
        ends = (dtype, None if dtype is FLOAT32 else affine(dtype, 0.02, 0 if dtype is INT16 else 21))
        values = None if bias is None else rng.integers(-3000, 3000, 3).astype(bias)
        options: dict[str, Any] = {"quantized_bias_type": "int32"} if dtype is INT16 and bias is np.int32 else {}
        geometry = ([4, 5], [2, 3], [2, 1], "same", [8, 5])
        return transpose_conv(geometry, ends, (kind, quantization, codes), ends, values, **options)

    return make


def hybrid(operator: str, weights: tuple[int, ...], version: int, scales: int = 1, channels: int = 3) -> Make:
    """Weights with some -128, whose product has the wrong sign in TFLite's blocks of sixteen."""

    def make() -> Graph:
        rng, outputs = np.random.default_rng(9), weights[-1 if operator == "depthwise_conv_2d" else 0]
        if operator == "fully_connected":
            return hybrid_graph(
                rng, operator, (3, weights[1]), weights, (3, outputs), scales, lowest=-128, version=version
            )
        shape, output, axis = (2, *WHERE.size, channels), (2, *WHERE.output, outputs), 3 if "depth" in operator else 0
        return hybrid_graph(rng, operator, shape, weights, output, scales, axis=axis, lowest=-128, version=version,
                            padding=WHERE.padding, stride_h=WHERE.stride[0], stride_w=WHERE.stride[1])  # fmt: skip

    return make


LAYERS: dict[str, Make] = {
    "conv_2d int8": convolution(INT8, INT32),
    "conv_2d int8, groups, per channel": convolution(INT8, INT32, 2, True),
    "conv_2d uint8": convolution(UINT8, INT32),
    "conv_2d int16": convolution(INT16, INT64),
    "conv_2d int16, 32 bits": convolution(INT16, INT32),
    "depthwise_conv_2d int8": depthwise(INT8, INT32),
    "depthwise_conv_2d uint8": depthwise(UINT8, INT32),
    "depthwise_conv_2d int16": depthwise(INT16, INT64),
    "fully_connected int8": fully_connected(INT8, INT32),
    "fully_connected int8, axes kept": fully_connected(INT8, None, keep=True),
    "fully_connected uint8": fully_connected(UINT8, INT32),
    "fully_connected int16": fully_connected(INT16, INT64),
    "fully_connected int16 x int16": fully_connected(INT16, INT64, INT16),
    "transpose_conv int8": transposed(INT8, np.int32),
    "transpose_conv uint8": transposed(UINT8, np.int32, UINT8),
    "transpose_conv int16": transposed(INT16, np.int64),
    "transpose_conv int16, 32 bits": transposed(INT16, np.int32),
    "transpose_conv hybrid": transposed(FLOAT32, np.float32),
    "fully_connected hybrid": hybrid("fully_connected", (7, 37), 9),
    "fully_connected hybrid, per channel": hybrid("fully_connected", (7, 37), 9, 7),
    "conv_2d hybrid": hybrid("conv_2d", (5, 3, 2, 3), 8),
    "conv_2d hybrid, per channel": hybrid("conv_2d", (5, 3, 2, 3), 8, 5),
    "conv_2d hybrid, groups": hybrid("conv_2d", (6, 3, 2, 3), 8, 6, channels=6),
    "depthwise_conv_2d hybrid": hybrid("depthwise_conv_2d", (1, 3, 2, 6), 6, 6),
}


def computed(graph: Graph, positions: tuple[int, ...]) -> tuple[Graph, list[Array]]:
    """Return the graph with operands as inputs, and their samples: the constants' elements in other orders."""
    rng, found, samples = np.random.default_rng(4), graph.copy(), list[Array]()
    for t in (graph.nodes[0].inputs[p] for p in positions):
        values = graph.tensors[t].data
        assert values is not None
        samples.append(np.stack([rng.permuted(values.reshape(-1)).reshape(values.shape) for _ in range(SAMPLES)]))
        found.tensors[t] = replace(graph.tensors[t], data=None)
        found.inputs = (*found.inputs, t)
    return found, samples


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("what", ["weights", "bias", "both"])
@pytest.mark.parametrize("constant", [False, True])
def test_weights_and_bias(oracle: Oracle, name: str, what: str, constant: bool) -> None:
    """The input is given for each sample, or a constant, too."""
    graph = LAYERS[name]()
    x, weights, bias = (2, 1, 3) if name.startswith("transpose") else (0, 1, 2)
    inputs = random_inputs(np.random.default_rng(7), graph, SAMPLES)
    if constant:
        t = graph.nodes[0].inputs[x]
        graph.tensors[t], graph.inputs = replace(graph.tensors[t], data=inputs.pop()[0]), ()
    positions = {"weights": (weights,), "bias": (bias,), "both": (weights, bias)}[what]
    changed, samples = computed(graph, tuple(p for p in positions if p < len(graph.nodes[0].inputs)))
    if samples:
        check_against_oracle(oracle, changed, [*inputs, *samples])
