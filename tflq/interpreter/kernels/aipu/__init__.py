"""Arithmetic `aipu`: Zhouyi's integers as the Compass Optimizer computes them (docs/aipu.md).

Operators have the names of Compass's layers, and their nodes the keys of its IR. A node reads the layer's tensors
first, then its constants; the name of a constant ends in "/" and the key.
"""

from __future__ import annotations

from tflq.interpreter.registry import Arithmetic

_HERE = "tflq.interpreter.kernels.aipu"
_OPERATORS = (
    "activation",
    "convolution",
    "depthwise_conv",
    "fully_connected",
    "pooling",
    "reshape",
    "softmax",
)

ARITHMETIC = Arithmetic("aipu", {operator: f"{_HERE}.{operator}" for operator in _OPERATORS}, "float")
