"""Histogram by the whitepaper (4.37): limits are codes of the input, round(limit * s_x - zp_x)."""

from __future__ import annotations

import numpy as np

from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.aipu import count
from tflq.interpreter.kernels.aipu.count import CountParams
from tflq.interpreter.kernels.aipu.scales import offset_of, scale_of


def lower(node: Node, operands: Operands) -> CountParams:
    """Decide the limits; raises as the Optimizer's own (../count.py)."""
    x = operands.input(0)
    limits = (np.rint(np.float32(node.attributes.real(key)) * scale_of(x) - offset_of(x)) for key in ("min", "max"))
    return count.lower_limits(node, operands, *(float(limit) for limit in limits))


def run(params: CountParams, x: Array) -> tuple[Array, ...]:
    """Run Count: codes [S, N, ...] -> counts [S, N, bins]."""
    return count.run(params, x)
