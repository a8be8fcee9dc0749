"""MEAN over height and width of dequantised logarithmic codes: the global average pool (docs/nnie.md, 5)."""

from __future__ import annotations

from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.float.reduction import lower_mean, run_mean
from tflq.interpreter.kernels.nnie.inputs import Quantised, lower_quantised
from tflq.interpreter.kernels.nnie.logarithm import Floats
from tflq.interpreter.operands.reduction_axes import Reduction


def lower(node: Node, operands: Operands) -> Quantised:
    """Decide z and the axes; raises as both."""
    return lower_quantised(node, operands, lower_mean)


def run(params: Quantised, x: Floats, *axes: Array) -> tuple[Array, ...]:
    """Run it: float32[S, N, H, W, C] -> float32[S, N, C], or with axes of 1 kept."""
    assert isinstance(params.inner, Reduction)
    return run_mean(params.inner, params.inputs.apply(x), *axes)
