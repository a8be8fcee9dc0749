"""Out of integers, and between the two widths of reals (docs/tpu_mlir.md, 2).

8 bits -> float32: f32(q - Z) * f32(S). 8 bits -> float16: f16((q - Z) * f16(S)). Reals: one rounding.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.graph import Affine, Array, DType, Node, Operands
from tflq.interpreter.operands.checks import EIGHT_BITS, require_type

_REALS = (DType.FLOAT32, DType.FLOAT16)


@dataclass(frozen=True, eq=False)
class DequantizeParams:
    """The numbers of one conversion.

    Attributes:
        affine: of integers; None for reals.
        dtype: of the output.
    """

    affine: Affine | None
    dtype: DType


def lower(node: Node, operands: Operands) -> DequantizeParams:  # noqa: ARG001
    """Decide how.

    Raises:
        UnsupportedError: other types.
    """
    source, output = operands.input(0), operands.output()
    require_type(source, (*_REALS, *EIGHT_BITS))
    require_type(output, _REALS)
    return DequantizeParams(source.affine if source.dtype.is_integer else None, output.dtype)


def run(params: DequantizeParams, x: Array) -> tuple[Array, ...]:
    """Run it: codes or reals [S, *shape] -> float32 or float16 [S, *shape]."""
    kind = params.dtype.storage
    with np.errstate(over="ignore"):
        if params.affine is None:
            return (x.astype(kind),)
        steps = (x.astype(np.int16) - np.int16(params.affine.zero_point[0])).astype(kind)
        return (np.multiply(steps, params.affine.scale[0].astype(kind), dtype=kind),)
