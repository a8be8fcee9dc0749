"""Activation PRELU: v = max(x, 0) + RNE(min(x, 0) * slope * 2^-12), then M * 2^-N (docs/aipu.md, 5).

Source: Compass Optimizer, ops/prelu.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.aipu.codes import OutputCodes, codes_of
from tflq.interpreter.kernels.aipu.multiplier import Multiplier, type_of_multiplier
from tflq.interpreter.kernels.aipu.scales import bits_of, constant_codes, offset_of, scale_of
from tflq.interpreter.kernels.aipu.stated import multiplier_of
from tflq.interpreter.kernels.aipu.written import CURVED, Written, rescale_keys
from tflq.interpreter.numerics.fixed_point import Integers

SLOPE = "negative_slope"
SLOPE_SHIFT = 12


@dataclass(frozen=True, eq=False)
class PreluParams:
    """The integers of one PRELU.

    Attributes:
        slope: int64, broadcast to the input behind its batch axis.
        input_offset: zp_x.
        rescale: M and N of s_y / s_x.
        codes: how the output is stored.
        written: for the IR.
    """

    slope: Integers
    input_offset: int
    rescale: Multiplier
    codes: OutputCodes
    written: Written

    def apply(self, x: Array) -> Array:
        """Return codes of codes."""
        v = x.astype(np.int64) + self.input_offset
        below = np.rint(np.minimum(v, 0) * self.slope * 2.0**-SLOPE_SHIFT).astype(np.int64)
        return self.codes.requantise(np.maximum(v, 0) + below, self.rescale)


def lower(node: Node, operands: Operands) -> PreluParams:
    """Decide M and N of s_y / s_x; the constant holds RNE(slope * 2^12) in int16."""
    x, output = operands.input(0), operands.output()
    found = multiplier_of(node, scale_of(output) / scale_of(x), bits_of(output))
    keys = {"negative_slope_shift": SLOPE_SHIFT, **rescale_keys(CURVED, found, type_of_multiplier(bits_of(output)))}
    return PreluParams(constant_codes(operands, SLOPE), offset_of(x), found, codes_of(output), Written(keys=keys))
