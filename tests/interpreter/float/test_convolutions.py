"""CONV_2D, DEPTHWISE_CONV_2D and FULLY_CONNECTED of float32 against TFLite: every bit, whatever the order of sums."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.draw import activations, kernel_settings, seeds
from tests.support.layers import Geometry, float_layer, geometries
from tests.support.single_op import check_against_oracle, random_inputs

SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e38, -1e38, 1e-42, 1.0, -1.0], np.float32)


@kernel_settings
@given(
    where=geometries(),
    depth=st.integers(1, 4),
    groups=st.integers(1, 3),
    outputs=st.integers(1, 4),
    activation=activations,
    seed=seeds,
)
def test_conv_2d(oracle, where, depth, groups, outputs, activation, seed):
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=(outputs * groups, *where.kernel, depth))
    shape, output = (1, *where.size, depth * groups), (1, *where.output, outputs * groups)
    attributes = {**where.attributes, **where.dilations, "fused_activation_function": activation}
    graph = float_layer("conv_2d", shape, weights, rng.normal(size=outputs * groups), output, **attributes)
    check_against_oracle(oracle, graph, random_inputs(rng, graph, 3))


@pytest.mark.parametrize(("channels", "outputs", "size"), [(40, 64, 12), (3, 16, 40), (64, 200, 3)])
def test_conv_2d_of_real_size(oracle, channels, outputs, size):
    rng = np.random.default_rng(size)
    where = Geometry((size, size), (3, 3), (1, 1), (1, 1), "same")
    weights, bias = rng.normal(size=(outputs, 3, 3, channels)), rng.normal(size=outputs)
    shape, output = (1, size, size, channels), (1, size, size, outputs)
    graph = float_layer("conv_2d", shape, weights, bias, output, **where.attributes)
    check_against_oracle(oracle, graph, random_inputs(rng, graph, 2))


@kernel_settings
@given(where=geometries(), channels=st.integers(1, 5), multiplier=st.integers(1, 3), activation=activations, seed=seeds)
def test_depthwise_conv_2d(oracle, where, channels, multiplier, activation, seed):
    rng = np.random.default_rng(seed)
    outputs = channels * multiplier
    weights, bias = rng.normal(size=(1, *where.kernel, outputs)), rng.normal(size=outputs)
    attributes = {**where.attributes, **where.dilations, "fused_activation_function": activation}
    shape, output = (1, *where.size, channels), (1, *where.output, outputs)
    attributes["depth_multiplier"] = multiplier
    graph = float_layer("depthwise_conv_2d", shape, weights, bias, output, **attributes)
    check_against_oracle(oracle, graph, random_inputs(rng, graph, 3))


@kernel_settings
@given(
    rows=st.integers(1, 4),
    depth=st.sampled_from([1, 7, 64, 700]),
    outputs=st.sampled_from([1, 5, 130]),
    bias=st.booleans(),
    keep=st.booleans(),
    activation=activations,
    seed=seeds,
)
def test_fully_connected(oracle, rows, depth, outputs, bias, keep, activation, seed):
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=(outputs, depth))
    graph = float_layer(
        "fully_connected",
        (rows, depth),
        weights,
        rng.normal(size=outputs) if bias else None,
        (rows, outputs),
        keep_num_dims=keep,
        fused_activation_function=activation,
    )
    check_against_oracle(oracle, graph, random_inputs(rng, graph, 3))


@pytest.mark.parametrize("operator", ["conv_2d", "depthwise_conv_2d"])
@pytest.mark.parametrize("special", ["input", "weights", "both"])
def test_infinities_nan_and_signed_zeros(oracle, operator, special):
    """Taps outside the image are skipped, not multiplied by 0: infinite weights must not turn into NaN there."""
    rng = np.random.default_rng(3)
    where = Geometry((6, 6), (3, 3), (1, 1), (1, 1), "same")
    shape = (4, 3, 3, 4) if operator == "conv_2d" else (1, 3, 3, 4)
    weights = rng.choice([-1.0, 0.0, -0.0, 2.0], shape)
    if special != "input":
        places = rng.random(shape) < 0.05
        weights[places] = rng.choice(SPECIAL, int(places.sum()))
    graph = float_layer(operator, (1, 6, 6, 4), weights, -np.zeros(4), (1, 6, 6, 4), **where.attributes)
    x = rng.choice([-1.0, 0.0, -0.0, 0.5], (20, 1, 6, 6, 4))
    if special != "weights":
        places = rng.random(x.shape) < 0.02
        x[places] = rng.choice(SPECIAL, int(places.sum()))
    check_against_oracle(oracle, graph, [x.astype(np.float32)])


def test_fully_connected_of_signed_zeros(oracle):
    weights = np.array([[-0.0, 0.0], [1.0, -1.0], [-1.0, -1.0]])
    graph = float_layer("fully_connected", (1, 2), weights, -np.zeros(3), (1, 3))
    x = np.array([[0.0, 0.0], [-0.0, -0.0], [1.0, 1.0], [0.0, -0.0], [np.inf, 0.0]], np.float32)
    check_against_oracle(oracle, graph, [x[:, None]])
