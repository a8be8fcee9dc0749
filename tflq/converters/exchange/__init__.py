"""TFLite's operators in the terms of ONNX (opset 21), for every format that exchanges float networks.

A rule says once what an operator is in ONNX's operators. ONNX writes those as they are, OpenVINO layer by layer
(openvino/emit/layers.py).
"""

from __future__ import annotations

from tflq.converters.exchange import elementwise, moves, reductions, sequences, windows
from tflq.converters.exchange.emitter import Rule

RULES: dict[str, Rule] = {**elementwise.RULES, **moves.RULES, **reductions.RULES, **sequences.RULES, **windows.RULES}
"""Every rule, by the operator's name."""
