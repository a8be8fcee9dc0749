"""TFLite's operators in the terms of ONNX (opset 21), for every format that exchanges float networks.

A rule writes one operator through an `Emitter`. onnx/writer.py adds ONNX's operators unchanged, openvino/emit/writer.py
the layers of the IR that openvino/emit/layers.py lists for them.
"""

from __future__ import annotations

from tflq.converters.exchange import elementwise, images, moves, products, reductions, sequences, windows
from tflq.converters.exchange.emitter import Rule

_FAMILIES = (elementwise, images, moves, products, reductions, sequences, windows)
RULES: dict[str, Rule] = {operator: rule for family in _FAMILIES for operator, rule in family.RULES.items()}
"""Rule of each operator."""
