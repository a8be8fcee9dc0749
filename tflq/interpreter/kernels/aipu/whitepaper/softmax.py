"""Softmax by the whitepaper (4.66): e = t[x], y = RNE(round(e * M / sum e) * 2^-N), s_y = 2^bits - 1, zp_y = 0.

The table is the Optimizer's (../softmax.py), with its largest entry at 2^20 - 1; the division is whole and rounds by
its remainder. M / 2^N = s_y in 15 bits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.aipu.codes import OutputCodes, codes_of
from tflq.interpreter.kernels.aipu.multiplier import WIDEST, Multiplier, find_multiplier
from tflq.interpreter.kernels.aipu.scales import bits_of, scale_of
from tflq.interpreter.kernels.aipu.softmax import exponentials, require_short_axis
from tflq.interpreter.kernels.aipu.tables import Table
from tflq.interpreter.kernels.aipu.written import NOTHING, Written


@dataclass(frozen=True, eq=False)
class SoftmaxParams:
    """The integers of one softmax.

    Attributes:
        table: of exp.
        axis: of the sample's own axes.
        span: 2^bits - 1, the index of the row's maximum.
        rescale: M and N of s_y.
        codes: how the output is stored.
        written: nothing.
    """

    table: Table
    axis: int
    span: int
    rescale: Multiplier
    codes: OutputCodes
    written: Written = NOTHING


def lower(node: Node, operands: Operands) -> SoftmaxParams:
    """Decide the table, M and N.

    Raises:
        UnsupportedError: more than 4096 terms.
    """
    x, output = operands.input(0), operands.output()
    axis = require_short_axis(node, x)
    found = find_multiplier(scale_of(output), WIDEST + 1)
    return SoftmaxParams(exponentials(node, operands), axis, (1 << bits_of(x)) - 1, found, codes_of(output))


def run(params: SoftmaxParams, x: Array) -> tuple[Array, ...]:
    """Run Softmax: codes [S, ...] -> codes [S, ...]."""
    wide, axis = x.astype(np.int64), params.axis + 1
    e = params.table.lookup(wide - wide.max(axis=axis, keepdims=True) + params.span)
    total = np.maximum(e.sum(axis=axis, keepdims=True), 1)
    share = (2 * e * params.rescale.first_m + total) // (2 * total)
    return (params.codes.store(np.rint(share * 2.0**-params.rescale.first_n)),)
