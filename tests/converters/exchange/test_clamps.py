"""Activations that clamp, fused and alone, of every type that sums have."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.onnx_run import run_onnx
from tests.support.openvino import Runtime, channels_first, files_of
from tflq.converters.onnx import ONNX
from tflq.converters.openvino import OPENVINO
from tflq.converters.settings import parse_settings
from tflq.converters.targets import Target
from tflq.errors import UnsupportedError
from tflq.graph import DType, Graph, GraphBuilder, Model

BOUNDS = {"none": (None, None), "relu": (0, None), "relu6": (0, 6), "relu_n1_to_1": (-1, 1)}
SHAPES = ((12,), (3, 4), (1, 2, 3, 4))


def sums(shape: tuple[int, ...], dtype: DType, operator: str, fused: str) -> Graph:
    b = GraphBuilder("sums")
    given = [b.input(name, shape, dtype) for name in "xy"]
    return b.build([b.add(operator, given, shape, dtype, fused_activation_function=fused)])


@pytest.mark.parametrize("target", [ONNX, OPENVINO], ids=lambda t: t.name)
@pytest.mark.parametrize("fused", BOUNDS)
@pytest.mark.parametrize("dtype", [DType.FLOAT32, DType.INT32, DType.INT64])
def test_fused(target: Target, dtype: DType, fused: str) -> None:
    compute = {"add": np.add, "sub": np.subtract, "mul": np.multiply}
    for shape, (operator, rule) in zip(SHAPES, compute.items(), strict=True):
        graph = sums(shape, dtype, operator, fused)
        draw = np.random.default_rng(len(shape))
        x, y = (draw.integers(-9, 10, (4, *shape)).astype(dtype.storage) for _ in range(2))
        low, high = BOUNDS[fused]
        wanted = np.clip(rule(x, y), -(1 << 20) if low is None else low, 1 << 20 if high is None else high)
        written = target.quantize(graph, parse_settings(target.settings, ["precision=float"] * (target is OPENVINO)))
        files = target.emit(written, Model([graph], source="sums.tflite"))
        if target is ONNX:
            (data,) = files.values()
            (found,) = run_onnx(data, [x, y])
        else:
            (found,) = Runtime(*files_of(files)).run_all([channels_first(x), channels_first(y)])
            wanted = channels_first(wanted)
        assert found.dtype == dtype.storage
        assert np.array_equal(found, wanted), operator


@pytest.mark.parametrize("fused", ["tanh", "sign_bit"])
def test_activations_that_do_not_clamp(fused: str) -> None:
    words = f"fused activation {fused}; known are none, relu, relu6, relu_n1_to_1, relu_0_to_1: make it an operator"
    with pytest.raises(UnsupportedError, match=words):
        ONNX.quantize(sums((3,), DType.FLOAT32, "add", fused), parse_settings(ONNX.settings))
