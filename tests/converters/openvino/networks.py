"""Small networks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.converters.calibration.ranges import range_of
from tflq.graph import Affine, DType, Graph, GraphBuilder, Range

WINDOW = {"padding": "same", "stride_h": 1, "stride_w": 1, "fused_activation_function": "none"}


def with_ranges(graph: Graph, low: float = -4, high: float = 4) -> Graph:
    """Return the graph with one range on all computed tensors that have none."""
    ranged = graph.copy()
    ranged.tensors = [
        t if t.is_constant or t.range is not None else replace(t, range=range_of(low, high)) for t in graph.tensors
    ]
    return ranged


def weights(*shape: int, seed: int = 0) -> np.ndarray:
    """Return float weights."""
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def conv(b: GraphBuilder, x: int, inputs: int, outputs: int, activation: str = "none", seed: int = 0) -> int:
    """Add a 3x3 convolution of 6x6 images."""
    operands = [x, b.constant("w", weights(outputs, 3, 3, inputs, seed=seed)), b.constant("b", weights(outputs))]
    attributes = {**WINDOW, "fused_activation_function": activation}
    return b.add("conv_2d", operands, (1, 6, 6, outputs), DType.FLOAT32, **attributes)  # type: ignore[arg-type]


def depthwise(b: GraphBuilder, x: int, channels: int) -> int:
    """Add a 3x3 depthwise convolution of 6x6 images."""
    operands = [x, b.constant("d", weights(1, 3, 3, channels)), b.constant("e", weights(channels))]
    attributes = {**WINDOW, "depth_multiplier": 1}
    return b.add("depthwise_conv_2d", operands, (1, 6, 6, channels), DType.FLOAT32, **attributes)  # type: ignore[arg-type]


def image_network(low: float = -4, high: float = 4) -> Graph:
    """Return conv, relu, conv, add, max pool, reshape, fully connected, softmax."""
    b = GraphBuilder("small")
    x = b.input("x", (1, 6, 6, 3), DType.FLOAT32)
    y = conv(b, x, 3, 8)
    y = b.add("relu", [y], (1, 6, 6, 8), DType.FLOAT32)
    z = conv(b, y, 8, 8, seed=1)
    s = b.add("add", [y, z], (1, 6, 6, 8), DType.FLOAT32, fused_activation_function="relu")
    pool = {"filter_height": 2, "filter_width": 2, "stride_h": 2, "stride_w": 2, "padding": "valid"}
    p = b.add("max_pool_2d", [s], (1, 3, 3, 8), DType.FLOAT32, **pool)  # type: ignore[arg-type]
    r = b.add("reshape", [p, b.constant("shape", np.array([1, 72], np.int32))], (1, 72), DType.FLOAT32)
    f = [r, b.constant("fw", weights(5, 72)), b.constant("fb", weights(5))]
    q = b.add("fully_connected", f, (1, 5), DType.FLOAT32, fused_activation_function="none", keep_num_dims=False)
    return with_ranges(b.build([b.add("softmax", [q], (1, 5), DType.FLOAT32, beta=1.0)]), low, high)


def per_channel_range(channels: int) -> Range:
    """Return a range for each channel."""
    high = np.linspace(0.5, 4, channels).astype(np.float32)
    return Range(-high * np.float32(0.7), high)


def asymmetric_weights(zero_point: int) -> Graph:
    """Return a fully connected layer of uint8 quantized values."""
    b = GraphBuilder("asymmetric")
    half = np.float32(0.5)
    x = b.input("x", (1, 4), DType.UINT8, Affine.per_tensor(half, 128, signed=False))
    codes = np.arange(12, dtype=np.uint8).reshape(3, 4) * 20
    w = b.constant("w", codes, Affine.per_tensor(half, zero_point, signed=False))
    output = Affine.per_tensor(np.float32(4), 128, signed=False)
    return b.build([b.add("fully_connected", [x, w], (1, 3), DType.UINT8, output, keep_num_dims=False)])
