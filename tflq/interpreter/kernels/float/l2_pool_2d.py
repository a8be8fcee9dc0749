"""L2_POOL_2D of float32: f32(sqrt(f32(total / n))), total of the squares in order (ky, kx) of the n taps in the image.

Equal to TFLite bit for bit. Source: TFLite kernels/pooling.cc, internal/reference/pooling.h (L2Pool).
"""

from __future__ import annotations

import numpy as np

from tflq.graph import Array, Node, Operands
from tflq.interpreter.accumulate.sequential import Floats
from tflq.interpreter.kernels.float.average_pool_2d import FloatAveragePool, window_means
from tflq.interpreter.kernels.float.average_pool_2d import lower as lower_average
from tflq.interpreter.kernels.plain.binary import clamp_in_place


def lower(node: Node, operands: Operands) -> FloatAveragePool:
    """Decide window, counts and bounds; raises as AVERAGE_POOL_2D."""
    return lower_average(node, operands)


def run(params: FloatAveragePool, x: Floats) -> tuple[Array, ...]:
    """Run it: float32[S, N, H, W, C] -> float32[S, N, OH, OW, C]."""
    with np.errstate(over="ignore", invalid="ignore"):
        roots = np.sqrt(window_means(params, x * x))
    return (clamp_in_place(roots, params.minimum, params.maximum),)
