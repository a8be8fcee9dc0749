"""Layers on real numbers beside their integers of 16 bits, which are the Optimizer's own (test_recorded.py)."""

from __future__ import annotations

import numpy as np
import pytest

from tests.converters.aipu.test_recorded import FLOAT, float_graph, layer_of, samples_of
from tests.support.aipu_layers import real_of
from tflq.converters.aipu import AIPU
from tflq.converters.calibration import StatisticsOptions, calibrate
from tflq.converters.settings import parse_settings
from tflq.interpreter import Engine, lower

SETTINGS = ("activation_bits=16", "weight_bits=16", "bias_bits=48", "lut_items_in_bits=10", "weights=per_channel")
COARSE = ("depthwise_conv", "div", "fully_connected", "group_norm", "instance_norm", "layer_norm", "lrn", "scatter_nd")
"""Layers of which the Optimizer keeps fewer bits: tables of roots and quotients, biases of many units."""
APART = ("basic_lstm", "bias_add", "gru_v1", "gru_v3")
"""Recurrent layers have onnxruntime (test_real_recurrent.py); BiasAdd loses the data's weight.

Source: docs/rules/aipu/operators.md.
"""
FAR = (
    "pad CONSTANT 9.0",  # beyond the range of the input, whose type the output has
    "lrn WITHIN_CHANNEL 3",  # the Optimizer's scale of the squares is 1
    *("lrn 1", "normalization 2", "layer_norm 1", "instance_norm 1", "cosine 2", "scatter_nd 7"),
)
"""Ranges so wide or so narrow that nothing of the 16 bits is left."""
CASES = [(k, n) for k, n in FLOAT if k != "networks" and n not in FAR and layer_of(k, n).operator not in APART]


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_near_the_integers(kind: str, name: str) -> None:
    samples = [x[:2] for x in samples_of(kind, name)]
    graph = calibrate(float_graph(kind, name), samples, StatisticsOptions("extrema"))
    quantized = lower(AIPU.quantize(graph, parse_settings(AIPU.settings, SETTINGS)), AIPU.arithmetic)
    codes, reals = [], []
    for x, t in zip(samples, quantized.inputs, strict=True):
        tensor = quantized.tensors[t]
        codes.append(AIPU.encode(x, tensor) if tensor.quantization is not None else x.astype(tensor.dtype.storage))
        reals.append(real_of(codes[-1], tensor).astype(x.dtype))
    integers, found = Engine(quantized).run(codes), Engine(graph).run(reals)
    for t, u in zip(quantized.outputs, graph.outputs, strict=True):
        wanted = np.asarray(real_of(integers[t], quantized.tensors[t]), np.float64)
        real = np.asarray(found[u], np.float64)
        assert real.shape == wanted.shape
        off = float(np.abs(real - wanted).mean()) / (float(np.ptp(real)) or 1.0)
        assert off < (0.06 if layer_of(kind, name).operator in COARSE else 0.005)
