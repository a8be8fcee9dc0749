"""Comparisons by the whitepaper (4.41): (a + zp_a) * 2^N against (b + zp_b) * M, M / 2^N = s_a / s_b in 15 bits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.aipu.logical import COMPARE
from tflq.interpreter.kernels.aipu.multiplier import WIDEST, find_multiplier
from tflq.interpreter.kernels.aipu.scales import offset_of, scale_of
from tflq.interpreter.kernels.aipu.written import NOTHING, Written
from tflq.interpreter.samples import align


@dataclass(frozen=True, eq=False)
class ComparisonParams:
    """The method, zp of the inputs, and what each input is multiplied by."""

    method: str
    input_offsets: tuple[int, int]
    factors: tuple[int, int]
    written: Written = NOTHING


def lower(node: Node, operands: Operands) -> ComparisonParams:
    """Decide 2^N and M."""
    a, b = operands.input(0), operands.input(1)
    found = find_multiplier(scale_of(a) / scale_of(b), WIDEST + 1)
    n = found.first_n
    factors = (1 << max(n, 0), found.first_m << max(-n, 0))
    return ComparisonParams(node.attributes.text("method"), (offset_of(a), offset_of(b)), factors)


def run(params: ComparisonParams, a: Array, b: Array) -> tuple[Array, ...]:
    """Run the comparison: codes [S, ...] and [S, ...] -> uint8 0 or 1."""
    left, right = (
        (x.astype(np.int64) + zp) * k
        for x, zp, k in zip(align(a, b), params.input_offsets, params.factors, strict=True)
    )
    return (COMPARE[params.method](left, right).astype(np.uint8),)
