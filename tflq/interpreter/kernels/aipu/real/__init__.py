"""Arithmetic `aipu_float`: Compass's layers on real numbers, as a float IR states them (docs/rules/aipu/compass_ir.md).

Nodes of a float IR name it: it is what runs them in float, calibrates them, and what their quantized run is compared
with. Layers that only move or choose values are those of arithmetic `aipu`. Sums of products run in the order of
TFLite's float kernels; the Optimizer's forward adds in its library's, so results differ in their last bits.
"""

from __future__ import annotations

NAME = "aipu_float"
