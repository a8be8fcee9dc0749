"""BATCH_MATMUL of two activations.

Integers, in the symmetric mode: y = sat(up(sum of qa * qb * m, s)), 32-bit m; m and s stand for Sa * Sb / Sy. Reals:
each sum in the order of k by fused multiply-add in float32, as TPU-MLIR's simulator has it (docs/tpu_mlir.md, 5).

Source: docs/tpu_mlir.md, 5
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import UnsupportedError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.accumulate.products import fused_products
from tflq.interpreter.kernels.tpu_mlir.multiplier import Multiplier, find_multiplier
from tflq.interpreter.kernels.tpu_mlir.rounding import saturate, shift_half_up
from tflq.interpreter.operands.batch_matmul import Adjoints, require_product
from tflq.interpreter.operands.checks import EIGHT_BITS, require_same_type, require_type

MULTIPLIER_BITS = 32


@dataclass(frozen=True, eq=False)
class MatmulParams(Adjoints):
    """The params of one product of two activations.

    Attributes:
        rescale: m and s; None for reals.
        dtype: of the output.
    """

    rescale: Multiplier | None
    dtype: DType


def lower(node: Node, operands: Operands) -> MatmulParams:
    """Decide m and s.

    Raises:
        UnsupportedError: other types than 8 bits or reals, a zero point other than 0, or a ratio without multiplier.
        GraphError: shapes that do not multiply.
    """
    a, b, y = operands.input(0), operands.input(1), operands.output()
    adj_x, adj_y, _ = require_product(node, operands)
    if y.dtype.is_floating:
        require_same_type(a, b, y)
        return MatmulParams(adj_x, adj_y, None, require_type(y, (DType.FLOAT16, DType.FLOAT32)))
    for tensor in (a, b, y):
        require_type(tensor, EIGHT_BITS)
        if int(tensor.affine.zero_point[0]):
            raise UnsupportedError(f"tensor '{tensor.name}' has a zero point; a product of activations has none")
    ratio = float(a.affine.scale[0]) * float(b.affine.scale[0]) / float(y.affine.scale[0])
    return MatmulParams(adj_x, adj_y, find_multiplier(ratio, MULTIPLIER_BITS), y.dtype)


def run(params: MatmulParams, x: Array, y: Array) -> tuple[Array, ...]:
    """Run BATCH_MATMUL: [S or 1, ..., A, K], [S or 1, ..., K, B] -> [S, ..., A, B]; integer sums are exact."""
    left, right = params.factors(x, y)
    if params.rescale is None:
        return (fused_products(left.astype(np.float32), right.astype(np.float32)).astype(params.dtype.storage),)
    total = np.matmul(left.astype(np.float64), right.astype(np.float64)).astype(np.int64)
    return (saturate(shift_half_up(total * params.rescale.multiplier[0], params.rescale.shift[0]), params.dtype),)
