"""Eltwise MAX and MIN by the whitepaper (4.25, 4.26): each input has its own s_y / s_i as M_i * 2^-N.

y = clamp(RNE(max((a + zp_a) * M_a, (b + zp_b) * M_b) * 2^-N) - zp_y), both M on the larger N.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.aipu.codes import OutputCodes, codes_of
from tflq.interpreter.kernels.aipu.multiplier import find_multiplier
from tflq.interpreter.kernels.aipu.scales import bits_of, offset_of, scale_of
from tflq.interpreter.kernels.aipu.written import NOTHING, Written
from tflq.interpreter.samples import align


@dataclass(frozen=True, eq=False)
class ExtremeParams:
    """The integers of MAX or MIN.

    Attributes:
        is_maximum: MAX, else MIN.
        input_offsets: zp_a and zp_b.
        factors: M_a and M_b on one shift.
        shift: N.
        is_rectified: whether negative results become 0.
        codes: how the output is stored.
        written: nothing: the vendor's IR has one M.
    """

    is_maximum: bool
    input_offsets: tuple[int, int]
    factors: tuple[int, int]
    shift: int
    is_rectified: bool
    codes: OutputCodes
    written: Written = NOTHING


def lower(node: Node, operands: Operands) -> ExtremeParams:
    """Decide M_a, M_b and N."""
    a, b, output = operands.input(0), operands.input(1), operands.output()
    found = [find_multiplier(scale_of(output) / scale_of(t), bits_of(output)) for t in (a, b)]
    shift = max(f.first_n for f in found)
    factors = (found[0].first_m << (shift - found[0].first_n), found[1].first_m << (shift - found[1].first_n))
    rectified = node.attributes.text("with_activation", "NONE") != "NONE"
    is_maximum = node.attributes.text("method") == "MAX"
    return ExtremeParams(is_maximum, (offset_of(a), offset_of(b)), factors, shift, rectified, codes_of(output))


def run(params: ExtremeParams, a: Array, b: Array) -> tuple[Array, ...]:
    """Run MAX or MIN: codes [S, ...] and [S, ...] -> codes [S, ...]."""
    left, right = (
        (x.astype(np.int64) + zp) * m
        for x, zp, m in zip(align(a, b), params.input_offsets, params.factors, strict=True)
    )
    chosen = np.maximum(left, right) if params.is_maximum else np.minimum(left, right)
    if params.is_rectified:
        chosen = np.maximum(chosen, 0)
    return (params.codes.store(np.rint(chosen.astype(np.float64) * 2.0**-params.shift)),)
