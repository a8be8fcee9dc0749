"""Negative by the whitepaper (4.47): s_y = s_x, zp_y = -zp_x, so that y = -x; the lowest code saturates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.aipu.codes import OutputCodes, codes_of
from tflq.interpreter.kernels.aipu.scales import offset_of
from tflq.interpreter.kernels.aipu.written import NOTHING, Written


@dataclass(frozen=True, eq=False)
class NegativeParams:
    """zp_x, and how the output is stored."""

    input_offset: int
    codes: OutputCodes
    written: Written = NOTHING


def lower(_node: Node, operands: Operands) -> NegativeParams:
    """Take both zero points."""
    return NegativeParams(offset_of(operands.input(0)), codes_of(operands.output()))


def run(params: NegativeParams, x: Array) -> tuple[Array, ...]:
    """Run Negative: codes [S, ...] -> codes [S, ...]."""
    return (params.codes.store(-(x.astype(np.int64) + params.input_offset)),)
