"""Codes to real numbers, in front of a layer that runs in floating point: x = (q + zp) / s (docs/aipu.md, 1).

Source: Compass Optimizer, utils/quant_tool_utils.py, linear_dequantize.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.aipu.scales import offset_of, scale_of
from tflq.interpreter.kernels.aipu.written import NOTHING, Written


@dataclass(frozen=True, eq=False)
class DequantizeParams:
    """zp and s of the codes, and the type of the numbers: float32, or integers and truth values of scale 1."""

    offset: int
    scale: np.float32
    dtype: np.dtype[np.generic]
    written: Written = NOTHING


def lower(_node: Node, operands: Operands) -> DequantizeParams:
    """Take zp and s of the input."""
    x = operands.input(0)
    return DequantizeParams(offset_of(x), scale_of(x), operands.output().dtype.storage)


def run(params: DequantizeParams, x: Array) -> tuple[Array, ...]:
    """Run it: codes [S, ...] -> numbers [S, ...], the division in float32."""
    real = (x.astype(np.int64) + params.offset).astype(np.float32) / params.scale
    return (real.astype(params.dtype),)
