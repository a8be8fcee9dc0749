"""CONCATENATION of dequantised logarithmic codes, one z for all operands (docs/nnie.md, 5)."""

from __future__ import annotations

from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.move import concatenation
from tflq.interpreter.kernels.nnie.inputs import Quantised, lower_quantised, run_quantised
from tflq.interpreter.kernels.nnie.logarithm import Floats


def lower(node: Node, operands: Operands) -> Quantised:
    """Decide z and what the float kernel needs; raises as both."""
    return lower_quantised(node, operands, concatenation.lower)


def run(params: Quantised, *arrays: Floats) -> tuple[Array, ...]:
    """Run it: float32[S, *shape] each -> float32[S, *shape]."""
    return run_quantised(params, concatenation.run, *arrays)
