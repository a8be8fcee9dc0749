"""LEAKY_RELU: int8 where the mode is symmetric, float16 where it is not (docs/tpu_mlir.md, 5).

symmetric: q >= 0: q; else up(q * m, s), 8-bit m about alpha. float16: x < 0: f16(f32(x) * f32(alpha)).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import UnsupportedError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.tpu_mlir.curve import TableParams, run_curve, table_of
from tflq.interpreter.kernels.tpu_mlir.multiplier import Multiplier, find_multiplier
from tflq.interpreter.kernels.tpu_mlir.rounding import shift_half_up
from tflq.interpreter.operands.checks import require_same_type

MULTIPLIER_BITS = 8


@dataclass(frozen=True, eq=False)
class LeakyReluParams:
    """The numbers of one LEAKY_RELU.

    Attributes:
        alpha: float32.
        rescale: m and s about alpha; None in float16.
        table: None in float16.
    """

    alpha: np.float32
    rescale: Multiplier | None = None
    table: TableParams | None = None


def lower(node: Node, operands: Operands) -> LeakyReluParams:
    """Decide the numbers of LEAKY_RELU.

    Raises:
        UnsupportedError: alpha is not positive, or the types differ.
    """
    alpha = np.float32(node.attributes.real("alpha"))
    if not 0 < alpha < np.inf:
        raise UnsupportedError(f"alpha is {alpha}; positive slopes are known: write a negative one as prelu or mul")
    require_same_type(operands.output(), operands.input(0))
    if operands.output().dtype is DType.FLOAT16:
        return LeakyReluParams(alpha)
    found = find_multiplier(float(alpha), MULTIPLIER_BITS)
    table = table_of(
        lambda q: np.where(q >= 0, q, shift_half_up(q * found.multiplier[0], found.shift[0])),
        operands,
    )
    return LeakyReluParams(alpha, found, table)


def run(params: LeakyReluParams, x: Array) -> tuple[Array, ...]:
    """Run LEAKY_RELU: int8 or float16 [S, *shape] -> the same type and shape."""
    if params.table is not None:
        return run_curve(params.table, x)
    real = np.asarray(x, np.float16)
    return (np.where(real < 0, (real.astype(np.float32) * params.alpha).astype(np.float16), real),)
