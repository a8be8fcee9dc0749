"""SegmentReduce: sums of rows with the same number: y = clamp(RNE(sum(x + zp_x) * M * 2^-N) - zp_y) (docs/aipu.md, 5).

r = s_y / s_x in 15 bits.

Source: Compass Optimizer, ops/segment_reduce.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import UnsupportedError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.aipu.codes import OutputCodes, codes_of
from tflq.interpreter.kernels.aipu.multiplier import WIDEST, Multiplier
from tflq.interpreter.kernels.aipu.scales import offset_of, scale_of
from tflq.interpreter.kernels.aipu.stated import multiplier_of
from tflq.interpreter.kernels.aipu.written import CURVED, Written, rescale_keys


@dataclass(frozen=True, eq=False)
class SegmentParams:
    """The integers of one layer: the number of segments, zp_x, M and N, the output's codes."""

    segments: int
    input_offset: int
    rescale: Multiplier
    codes: OutputCodes
    written: Written


def lower(node: Node, operands: Operands) -> SegmentParams:
    """Decide M and N.

    Raises:
        UnsupportedError: another method than SUM.
    """
    x, output = operands.input(0), operands.output()
    method = node.attributes.text("method")
    if method != "SUM":
        raise UnsupportedError(f"method={method}; allowed is SUM")
    found = multiplier_of(node, scale_of(output) / scale_of(x), WIDEST + 1)
    written = Written(keys=rescale_keys(CURVED, found, "uint16"))
    return SegmentParams(output.shape[0], offset_of(x), found, codes_of(output), written)


def run(params: SegmentParams, x: Array, segments: Array) -> tuple[Array, ...]:
    """Run SegmentReduce: codes [S, rows, ...] and [S, rows] -> codes [S, segments, ...]; 0 where no row belongs."""
    v = x.astype(np.int64) + params.input_offset
    rows = segments.reshape(*segments.shape[:2], *(1,) * (x.ndim - 2))
    sums = [np.where(rows == number, v, 0).sum(axis=1) for number in range(params.segments)]
    return (params.codes.requantise(np.stack(sums, axis=1), params.rescale),)
