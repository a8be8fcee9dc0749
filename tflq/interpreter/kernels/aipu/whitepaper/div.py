"""Div by the whitepaper (4.23): a whole division, rounded by its remainder.

q = round((a + zp_a) * M / (b + zp_b)), halves away from zero; y = clamp(RNE(q * 2^-N) - zp_y), r = s_y * s_b / s_a;
dividing by zero gives 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.aipu.codes import OutputCodes, codes_of
from tflq.interpreter.kernels.aipu.multiplier import Multiplier, find_multiplier
from tflq.interpreter.kernels.aipu.scales import bits_of, offset_of, scale_of
from tflq.interpreter.kernels.aipu.written import NOTHING, Written
from tflq.interpreter.samples import align


@dataclass(frozen=True, eq=False)
class DivParams:
    """zp of the inputs, M and N, how the output is stored."""

    input_offsets: tuple[int, int]
    rescale: Multiplier
    codes: OutputCodes
    written: Written = NOTHING


def lower(_node: Node, operands: Operands) -> DivParams:
    """Decide M and N."""
    a, b, output = operands.input(0), operands.input(1), operands.output()
    ratio = np.float32(scale_of(output) * scale_of(b)) / scale_of(a)
    found = find_multiplier(np.float32(ratio), bits_of(output))
    return DivParams((offset_of(a), offset_of(b)), found, codes_of(output))


def run(params: DivParams, a: Array, b: Array) -> tuple[Array, ...]:
    """Run Div: codes [S, ...] and [S, ...] -> codes [S, ...]."""
    left, right = (x.astype(np.int64) + zp for x, zp in zip(align(a, b), params.input_offsets, strict=True))
    numerator, divisor = np.abs(left) * params.rescale.first_m, np.maximum(np.abs(right), 1)
    quotient = (2 * numerator + divisor) // (2 * divisor) * np.sign(left) * np.sign(right)
    rounded = np.rint(quotient.astype(np.float64) * 2.0**-params.rescale.first_n)
    return (params.codes.store(rounded),)
