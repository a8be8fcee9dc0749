"""AVERAGE_POOL_2D of dequantised logarithmic codes, float32 sums (docs/nnie.md, 5)."""

from __future__ import annotations

from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.float.pools import lower_average, run_average
from tflq.interpreter.kernels.nnie.inputs import Quantised, lower_quantised, run_quantised
from tflq.interpreter.kernels.nnie.logarithm import Floats


def lower(node: Node, operands: Operands) -> Quantised:
    """Decide z and what the float kernel needs; raises as both."""
    return lower_quantised(node, operands, lower_average)


def run(params: Quantised, x: Floats) -> tuple[Array, ...]:
    """Run it: float32[S, N, H, W, C] -> float32[S, N, OH, OW, C]."""
    return run_quantised(params, run_average, x)
