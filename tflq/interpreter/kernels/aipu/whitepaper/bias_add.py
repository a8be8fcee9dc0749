"""BiasAdd by the whitepaper (4.8): y = clamp(RNE((x + B) * M * 2^-N) - zp_y), B = RNE(s_x * b) + zp_x, r = s_y / s_x.

The quantiser makes B; what runs is the Optimizer's own sum (../bias_add.py), which is right on this scale.
"""

from __future__ import annotations

from tflq.interpreter.kernels.aipu.bias_add import BiasAddParams, lower, run

__all__ = ["BiasAddParams", "lower", "run"]
