"""Activation: RELU and RELU6 that no linear layer took: y = clamp(RNE(max(x + zp_x, 0) * M * 2^-N) - zp_y)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.aipu.multiplier import Multiplier, type_of_multiplier
from tflq.interpreter.kernels.aipu.scales import bits_of, code_limits, offset_of, scale_of
from tflq.interpreter.kernels.aipu.stated import multiplier_of
from tflq.interpreter.kernels.aipu.written import CURVED, LINEAR, Written, rescale_keys

_ORDERS = {"RELU": LINEAR, "RELU6": CURVED}


@dataclass(frozen=True, eq=False)
class RectifierParams:
    """The integers of one rectifier: zp_x, M and N, zp_y, the output's limits."""

    input_offset: int
    rescale: Multiplier
    offset: int
    minimum: int
    maximum: int
    dtype: np.dtype[np.generic]
    written: Written

    def apply(self, x: Array) -> Array:
        """Return codes of codes."""
        total = np.maximum(x.astype(np.int64) + self.input_offset, 0)
        codes = np.clip(self.rescale.apply(total) - self.offset, self.minimum, self.maximum)
        return codes.astype(self.dtype)


def lower(node: Node, operands: Operands) -> RectifierParams:
    """Decide M and N of s_y / s_x."""
    method = node.attributes.text("method")
    x, output = operands.input(0), operands.output()
    found = multiplier_of(node, scale_of(output) / scale_of(x), bits_of(output))
    written = Written(keys=rescale_keys(_ORDERS[method], found, type_of_multiplier(bits_of(output))))
    low, high = code_limits(output)
    return RectifierParams(offset_of(x), found, offset_of(output), low, high, output.dtype.storage, written)
