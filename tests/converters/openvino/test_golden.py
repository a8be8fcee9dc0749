"""OpenVINO's own results: FakeQuantize on ten ranges, and a hand-made network read from its IR."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.data import data_path
from tflq.converters.openvino import OPENVINO
from tflq.converters.openvino.reader import read_model
from tflq.converters.settings import parse_settings
from tflq.graph import DType, FakeQuantize
from tflq.interpreter import Engine
from tflq.interpreter.kernels.openvino.levels import level_indices, level_values


@pytest.mark.parametrize("case", range(10))
def test_level_indices(case: int) -> None:
    data = np.load(data_path("golden", "openvino", "fq_cases.npz"))
    levels, *bounds = data[f"case{case}"]
    rule = FakeQuantize(int(levels), *(np.array([bound], np.float32) for bound in bounds))
    x, y = data[f"x{case}"], data[f"y{case}"]
    index = level_indices(x, rule)
    low, high = float(bounds[2]), float(bounds[3])
    theirs = np.rint((y.astype(np.float64) - low) / (high - low) * (levels - 1))
    assert np.array_equal(index, theirs)
    step = abs(high - low) / (levels - 1)
    assert np.abs(level_values(index, rule).astype(np.float64) - y).max() <= 4e-5 * step


def test_conv_relu_fq() -> None:
    model = read_model(data_path("golden", "openvino", "conv_relu_fq.xml"))
    data = np.load(data_path("golden", "openvino", "conv_relu_fq.npz"))
    x = data["x"][:, None]
    graph = OPENVINO.quantize(model.main, parse_settings(OPENVINO.settings))
    assert [n.operator for n in graph.nodes if n.operator in ("conv_2d", "fake_quantize")] == ["conv_2d"] * 2
    (mid,) = (t for t, tensor in enumerate(graph.tensors) if tensor.name == "FakeQuantize14")
    assert graph.tensors[mid].dtype is DType.INT8
    found = Engine(graph, "openvino").run([x], keep=[mid, *graph.outputs])
    assert np.array_equal(found[mid][:, 0].transpose(0, 3, 1, 2), data["mid_level"])
    ours, theirs = found[graph.outputs[1]][:, 0], data["out"]
    # The runtime sums in float32, we in float64: within 2^-23 of the largest output, one unit in its last place.
    assert np.abs(ours.astype(np.float64) - theirs).max() <= 2.0**-23 * np.abs(theirs).max()


def test_conv_relu_fq_as_written() -> None:
    """FakeQuantize in one piece, convolutions of reals."""
    model = read_model(data_path("golden", "openvino", "conv_relu_fq.xml"))
    data = np.load(data_path("golden", "openvino", "conv_relu_fq.npz"))
    found = Engine(model.main, "openvino").run([data["x"][:, None]])
    scale, zero_point = 0.031, -128
    mid = np.rint(found[model.main.outputs[0]][:, 0] / scale) + zero_point
    assert np.array_equal(mid, data["mid_level"])
