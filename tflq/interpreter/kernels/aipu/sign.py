"""Sign: -1, 0 or 1 of x + zp_x, at scale 1 (docs/aipu.md, 5)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.aipu.scales import offset_of
from tflq.interpreter.kernels.aipu.written import NOTHING, Written


@dataclass(frozen=True, eq=False)
class SignParams:
    """zp_x and the output's type."""

    input_offset: int
    dtype: np.dtype[np.generic]
    written: Written = NOTHING


def lower(_node: Node, operands: Operands) -> SignParams:
    """Take the zero point."""
    return SignParams(offset_of(operands.input(0)), operands.output().dtype.storage)


def run(params: SignParams, x: Array) -> tuple[Array, ...]:
    """Run Sign: codes [S, ...] -> -1, 0, 1."""
    return (np.sign(x.astype(np.int64) + params.input_offset).astype(params.dtype),)
