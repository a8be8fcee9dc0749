"""Images with samples last in memory: the engine's choice, and that nobody can tell it by the results."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.data import data_path
from tests.support.draw import affine
from tests.support.single_op import check_against_oracle, random_inputs
from tflq.converters.tflite import read_model
from tflq.graph import DType, Graph, GraphBuilder
from tflq.interpreter import Engine
from tflq.interpreter.layout import is_samples_last, to_samples_first, to_samples_last
from tflq.oracle import Oracle

INT8 = DType.INT8
SAMPLES = 70


def separable() -> Graph:
    """int8: 3x3 conv, stride 2 -> depthwise -> 1x1 conv -> logistic -> add -> depthwise, stride 2 -> global pool."""
    b = GraphBuilder()
    rng = np.random.default_rng(3)
    q = [affine(INT8, scale, zero) for scale, zero in ((0.05, 3), (0.004, 0), (0.1, -7), (1 / 256, -128))]
    step = {"stride_w": 1, "stride_h": 1, "padding": "same", "fused_activation_function": "relu"}
    halve = step | {"stride_w": 2, "stride_h": 2}

    def weights(*shape: int) -> int:
        return b.constant("w", rng.integers(-127, 128, shape, np.int8), q[1])

    def bias(channels: int) -> int:
        return b.constant("b", rng.integers(-999, 999, channels, np.int32))

    x = b.input("x", (1, 13, 11, 3), INT8, q[0])
    y = b.add("conv_2d", [x, weights(40, 3, 3, 3), bias(40)], (1, 7, 6, 40), INT8, q[2], **halve)
    y = b.add("depthwise_conv_2d", [y, weights(1, 5, 5, 40), bias(40)], (1, 7, 6, 40), INT8, q[2], **step)
    y = b.add("conv_2d", [y, weights(40, 1, 1, 40), bias(40)], (1, 7, 6, 40), INT8, q[2], **step)
    z = b.add("logistic", [y], (1, 7, 6, 40), INT8, q[3])
    y = b.add("add", [y, z], (1, 7, 6, 40), INT8, q[2], fused_activation_function="none")
    y = b.add("depthwise_conv_2d", [y, weights(1, 5, 5, 40), bias(40)], (1, 4, 3, 40), INT8, q[2], **halve)
    window = step | {"filter_width": 3, "filter_height": 4, "padding": "valid"}
    return b.build([b.add("average_pool_2d", [y], (1, 1, 1, 40), INT8, q[2], **window)])


def test_orders_are_told_by_the_memory() -> None:
    x = np.arange(3 * 2 * 4 * 5 * 6).reshape(3, 2, 4, 5, 6)
    last = to_samples_last(x)
    assert is_samples_last(last)
    assert not is_samples_last(x)
    assert np.array_equal(last, x)
    assert to_samples_first(last).flags.c_contiguous
    assert to_samples_first(x) is x
    assert to_samples_last(x[:1]) is not None
    assert not is_samples_last(to_samples_last(x[:1]))


def test_a_separable_network_against_tflite(oracle: Oracle) -> None:
    """Every tensor; the engine goes to samples last and back around LOGISTIC and ADD."""
    graph = separable()
    engine = Engine(graph)
    assert engine.chunk_size() >= SAMPLES
    assert engine._program.prefers_samples_last
    for tensor in check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(5), graph, SAMPLES)).values():
        assert tensor.flags.c_contiguous


@pytest.mark.parametrize(
    ("name", "last"),
    [("kws_ref_model", True), ("vww_96_int8", True), ("str_ww_ref_model", True), ("pretrainedResnet_quant", False)],
)
def test_depthwise_convolutions_decide(name: str, last: bool) -> None:
    assert Engine(read_model(data_path("models", f"{name}.tflite")).main)._program.prefers_samples_last is last
