"""CONV_3D_TRANSPOSE: float32 only, but its first input is a shape, so that it is asked for here too."""

from __future__ import annotations

from tflq.interpreter.kernels.float.conv_3d_transpose import lower, run

__all__ = ["lower", "run"]
