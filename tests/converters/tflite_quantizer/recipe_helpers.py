"""A network with three kinds of weights, quantized by a recipe."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest

from tflq.converters.calibration import StatisticsOptions, calibrate
from tflq.converters.settings import parse_settings
from tflq.converters.tflite import model_from_bytes
from tflq.converters.tflite_quantizer import TFLITE
from tflq.graph import Array, DType, Graph, GraphBuilder, Model

needs_package = pytest.mark.skipif(
    find_spec("ai_edge_quantizer") is None,
    reason="ai-edge-quantizer is not installed: it comes with tflq[recipes]",
)

WINDOW = {"padding": "same", "stride_h": 1, "stride_w": 1, "fused_activation_function": "relu"}


def network() -> Graph:
    """Return a convolution, a depthwise one, and a product."""
    b = GraphBuilder("small")
    draw = np.random.default_rng(9)

    def constant(*shape: int) -> int:
        return b.constant(f"c{draw.integers(1 << 40)}", draw.normal(size=shape).astype(np.float32))

    x = b.input("x", (1, 8, 4, 3), DType.FLOAT32)
    y = b.add("conv_2d", [x, constant(8, 3, 3, 3), constant(8)], (1, 8, 4, 8), DType.FLOAT32, **WINDOW)
    y = b.add("depthwise_conv_2d", [y, constant(1, 3, 3, 8), constant(8)], (1, 8, 4, 8), DType.FLOAT32,
              depth_multiplier=1, **WINDOW)  # fmt: skip
    shape = b.constant("shape", np.array([1, 256], np.int32))
    y = b.add("reshape", [y, shape], (1, 256), DType.FLOAT32)
    return b.build([b.add("fully_connected", [y, constant(7, 256), constant(7)], (1, 7), DType.FLOAT32,
                          fused_activation_function="none", keep_num_dims=False)])  # fmt: skip


def samples() -> Array:
    return np.random.default_rng(2).normal(size=(6, 1, 8, 4, 3)).astype(np.float32)


def written(*settings: str, layers: tuple[str, ...] = ()) -> tuple[bytes, Graph]:
    graph = network()
    calibrated = calibrate(graph, [samples()], StatisticsOptions(keep_samples=6))
    quantized = TFLITE.quantize(calibrated, parse_settings(TFLITE.settings, settings, layers))
    (content,) = TFLITE.emit(quantized, Model([graph])).values()
    return content, model_from_bytes(content, "written").main


def weight_types(graph: Graph) -> dict[str, DType]:
    found = {}
    for node in graph.nodes:
        if node.operator in ("conv_2d", "depthwise_conv_2d", "fully_connected"):
            t = node.inputs[1]
            source = next((n.inputs[0] for n in graph.nodes if t in n.outputs), t)
            found[node.operator] = graph.tensors[source].dtype
    return found
