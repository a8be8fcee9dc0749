"""ADD of dequantised logarithmic codes, one z for both operands (docs/nnie.md, 5)."""

from __future__ import annotations

from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.float.pairs import KERNELS
from tflq.interpreter.kernels.nnie.inputs import Quantised, lower_quantised, run_quantised
from tflq.interpreter.kernels.nnie.logarithm import Floats


def lower(node: Node, operands: Operands) -> Quantised:
    """Decide z and what the float kernel needs; raises as both."""
    return lower_quantised(node, operands, KERNELS["add"].lower)


def run(params: Quantised, first: Floats, second: Floats) -> tuple[Array, ...]:
    """Run it: float32[S, *shape] twice -> float32[S, *shape]."""
    return run_quantised(params, KERNELS["add"].run, first, second)
