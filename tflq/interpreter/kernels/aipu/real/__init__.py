"""Arithmetic `aipu_float`: the layers of Compass's float IR in floating point (docs/rules/aipu/compass_ir.md).

Nodes of a float IR name it: it runs them in float, calibrates them, and is the reference of their quantized run. Layers
that only move or choose values are taken from arithmetic `aipu`. Sums of products run in the order of TFLite's float
kernels; the Optimizer's forward adds in its library's, so results differ in their last bits.
"""

from __future__ import annotations

NAME = "aipu_float"
