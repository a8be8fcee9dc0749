"""Constants of small numbers, which NNTool keeps, drops or fails on: what it does is its own answer (scripts/peer)."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.gap9_golden import quantized
from tests.support.gap9_nets import Net, encoding
from tflq.converters.gap9.departures import departures_of
from tflq.errors import UnsupportedError
from tflq.graph import Affine, Model
from tflq.interpreter import lower

BIAS = (7000, -8522, -1298)


def dense(weight_scale: float, channels: int) -> Model:
    """Return one fully connected layer on [-0.98, 1], with BIAS; weights are stated for each channel, or for all."""
    net = Net((-0.98, 1.0), (1, 4))
    codes = np.array([[127, -50, 30, 9], [-127, 64, 3, 70], [1, 127, -90, -7]], np.int8)
    scales = np.full(channels, weight_scale, np.float32)
    weights = net.builder.constant("w", codes, Affine(scales, np.zeros(channels, np.int64), 0))
    input_scale = encoding((-0.98, 1.0)).scale.astype(np.float32)
    bias_type = Affine(input_scale * scales, np.zeros(channels, np.int64), 0, 32)
    bias = net.builder.constant("b", np.array(BIAS, np.int32), bias_type)
    largest = float(weight_scale) * 300
    options = {"fused_activation_function": "none"}
    y = net.add("fully_connected", [net.x, weights, bias], (1, 3), (-largest, largest), **options)
    return net.model(y)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(
    ("weight_scale", "right", "kept"),
    [
        # S_b: 1.55e-8 in the file, 1.57e-8 here
        (2e-6, (6903, -8404, -1280), True),
        # the two are 9.84e-9 apart: less than 1e-8 + 1e-5 S_b
        (0.9e-4, (6903, -8404, -1280), True),
        # 1.09e-8 apart
        (1e-4, (6903, -8404, -1280), False),
    ],
)
def test_a_bias_of_nearly_the_same_scale(
    weight_scale: float, channels: int, right: tuple[int, ...], kept: bool
) -> None:
    model = dense(weight_scale, channels)
    for numerics in ("exact", "nntool"):
        graph = lower(quantized(model, "gap9-sq8", [f"numerics={numerics}"]), "gap9")
        node = graph.nodes[-1]
        stored = graph.tensors[node.inputs[2]].data
        assert stored is not None
        assert tuple(stored) == (BIAS if kept and numerics == "nntool" else right)
        assert ("17.28" in departures_of(graph).get(node.name, "")) == kept


def convolution(codes: list[list[int]], scale: float, zero_point: int, per_channel: bool) -> Model:
    """Return one 1x1 convolution with a bias."""
    net, channels = Net(), len(codes)
    size = channels if per_channel else 1
    affine = Affine(np.full(size, scale, np.float32), np.full(size, zero_point, np.int64), 0)
    weights = net.builder.constant("w", np.array(codes, np.int8).reshape(channels, 1, 1, 4), affine)
    bias_type = Affine(np.full(size, scale / 127, np.float32), np.zeros(size, np.int64), 0, 32)
    bias = net.builder.constant("b", np.arange(channels, dtype=np.int32) * 100, bias_type)
    options = {"padding": "same", "stride_h": 1, "stride_w": 1, "fused_activation_function": "none"}
    return net.model(
        net.add("conv_2d", [net.x, weights, bias], (1, 8, 8, channels), (-scale * 30, scale * 30), **options)
    )


TWO = [[127, -90, 3, 7], [1, 0, -1, 0]]


@pytest.mark.parametrize(
    ("codes", "scale", "zero_point", "per_channel", "says"),
    [
        (TWO, 1.2e-4, 0, False, "NNTool fails on channel 1"),
        (TWO, 1.3e-4, 0, False, ""),
        (TWO, 1.2e-4, 0, True, ""),
        (TWO, 1e-5, 3, True, "NNTool fails on channel 1"),
        ([[127, -90, 3, 7], [0, 0, 0, 0]], 1e-2, 0, False, ""),
        ([[1, 0, -1, 0]], 1e-5, 0, False, ""),
        ([[1, 0, -1, 0]], 1e-5, 3, True, "NNTool takes the filter's only channel for zeros"),
    ],
)
def test_tiny_weights(codes: list[list[int]], scale: float, zero_point: int, per_channel: bool, says: str) -> None:
    model = convolution(codes, scale, zero_point, per_channel)
    graph = lower(quantized(model, "gap9-sq8"), "gap9")
    node = next(n for n in graph.nodes if n.operator == "conv_2d")
    told = departures_of(graph).get(node.name, "")
    assert ("17.29" in told, says in told) == (bool(says), True)
    kept = graph.tensors[node.inputs[1]].data
    assert kept is not None
    assert np.abs(kept).max() == 127
    if "fails" in says:
        with pytest.raises(UnsupportedError, match=f"{says}.*numerics=exact converts it"):
            quantized(model, "gap9-sq8", ["numerics=nntool"])
        return
    graph = lower(quantized(model, "gap9-sq8", ["numerics=nntool"]), "gap9")
    taken = graph.tensors[next(n for n in graph.nodes if n.operator == "conv_2d").inputs[1]].data
    assert taken is not None
    assert bool(taken.any()) == ("zeros" not in says)
