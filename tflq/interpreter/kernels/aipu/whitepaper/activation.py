"""Activation by the whitepaper: CLIP and LEAKYRELU on the output's scale; functions with a symmetry by half a table.

4.11  y = clamp(RNE((x + zp_x) * M * 2^-N) - zp_y, cmin_q, cmax_q), limits as codes of the output
4.39  v = RNE((x + zp_x) * M * 2^-N); y = max(v, 0) + RNE(min(v, 0) * alpha_q * 2^-bits) - zp_y
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.aipu.codes import OutputCodes, codes_of
from tflq.interpreter.kernels.aipu.multiplier import Multiplier, find_multiplier
from tflq.interpreter.kernels.aipu.scales import bits_of, encode, offset_of, scale_of
from tflq.interpreter.kernels.aipu.signed_rescale import leaky_slope
from tflq.interpreter.kernels.aipu.whitepaper.mirrored import MirroredParams, lower_mirrored
from tflq.interpreter.kernels.aipu.written import NOTHING, Written


@dataclass(frozen=True, eq=False)
class ScaledParams:
    """The integers of CLIP and LEAKYRELU.

    Attributes:
        input_offset: zp_x.
        rescale: M and N of s_y / s_x.
        slope: alpha * 2^slope_bits; None for CLIP.
        slope_bits: bits of the output.
        codes: how the output is stored; the limits of CLIP are its own.
        written: nothing: the vendor's IR has no such layer.
    """

    input_offset: int
    rescale: Multiplier
    slope: int | None
    slope_bits: int
    codes: OutputCodes
    written: Written = NOTHING

    def apply(self, x: Array) -> Array:
        """Return codes of codes."""
        v = self.rescale.apply(x.astype(np.int64) + self.input_offset).astype(np.int64)
        if self.slope is not None:
            v = np.maximum(v, 0) + np.rint(np.minimum(v, 0) * self.slope * 2.0**-self.slope_bits).astype(np.int64)
        return self.codes.store(v)


def lower(node: Node, operands: Operands) -> ScaledParams | MirroredParams:
    """Decide M and N, and limits or slope; or half a table."""
    method = node.attributes.text("method")
    if method not in ("CLIP", "LEAKYRELU"):
        return lower_mirrored(node, operands)
    x, output = operands.input(0), operands.output()
    bits, codes = bits_of(output), codes_of(output)
    found = find_multiplier(scale_of(output) / scale_of(x), bits)
    if method == "LEAKYRELU":
        return ScaledParams(offset_of(x), found, leaky_slope(node, bits), bits, codes)
    limits = np.array([node.attributes.real(key) for key in ("clip_min", "clip_max")], np.float32)
    low, high = (int(code) for code in encode(limits, output.affine))
    return ScaledParams(offset_of(x), found, None, 0, OutputCodes(codes.offset, low, high, codes.dtype))


def run(params: ScaledParams | MirroredParams, x: Array) -> tuple[Array, ...]:
    """Run Activation: codes [S, ...] -> codes [S, ...]."""
    return (params.apply(x),)
