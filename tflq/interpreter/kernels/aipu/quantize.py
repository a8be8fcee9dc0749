"""Real numbers to codes, behind a layer that runs in floating point: clamp(RNE(f32(s * x) - zp)) (docs/aipu.md, 1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.graph import Affine, Array, Node, Operands
from tflq.interpreter.kernels.aipu.scales import affine_of, encode
from tflq.interpreter.kernels.aipu.written import NOTHING, Written


@dataclass(frozen=True, eq=False)
class QuantizeParams:
    """The type of the codes."""

    affine: Affine
    dtype: np.dtype[np.generic]
    written: Written = NOTHING


def lower(_node: Node, operands: Operands) -> QuantizeParams:
    """Take the type of the output; one without quantisation (indices) has s = 1."""
    y = operands.output()
    plain = affine_of(np.float32(1), 0, y.dtype.bits, y.dtype.is_signed)
    return QuantizeParams(y.affine if isinstance(y.quantisation, Affine) else plain, y.dtype.storage)


def run(params: QuantizeParams, x: Array) -> tuple[Array, ...]:
    """Run it: numbers [S, ...] -> codes [S, ...]."""
    return (encode(x, params.affine).astype(params.dtype),)
