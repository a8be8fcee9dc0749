"""SOFTMAX of float32 and float16 over the last axis: e = exp(f32(f32(x - max) * beta)); y = f32(e / sum of e in order).

exp is computed in float64 and rounded once, TFLite's is the host's expf, off by one unit in the last place in about one
of 1700 results. Each of the C additions can pass that on and add a unit, so C + 2 units bound the difference; the tests
find 4 at most over rows of 10. float16 is widened; e is rounded to float16 before the quotient, not before the sum.

Source: TFLite kernels/internal/reference/softmax.h.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import GraphError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.operands.checks import require_same_type, require_type


@dataclass(frozen=True)
class Softmax:
    """What SOFTMAX needs: beta, as float32."""

    beta: np.float32


def lower(node: Node, operands: Operands) -> Softmax:
    """Read beta.

    Raises:
        UnsupportedError: another type.
        GraphError: a scalar input.
    """
    require_type(operands.input(0), (DType.FLOAT32, DType.FLOAT16))
    require_same_type(operands.input(0), operands.output())
    if not operands.input(0).shape:
        raise GraphError("the input is a scalar; softmax takes one axis or more")
    return Softmax(np.float32(node.attributes.real("beta", 0.0)))


def run(params: Softmax, x: Array) -> tuple[Array, ...]:
    """Run SOFTMAX: T[S, ..., C] -> T[S, ..., C]."""
    wide = x.astype(np.float32, copy=False)
    with np.errstate(all="ignore"):
        below = (wide - wide.max(-1, keepdims=True)) * params.beta
        e = np.exp(below.astype(np.float64)).astype(np.float32)
        total = np.add.accumulate(e, -1)[..., -1:]
        kept = e.astype(x.dtype, copy=False).astype(np.float32, copy=False)
        return (np.asarray((kept / total).astype(x.dtype, copy=False)),)
