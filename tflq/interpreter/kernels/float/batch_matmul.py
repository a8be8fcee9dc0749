"""BATCH_MATMUL of float32: products of matrices, each sum in the order of k. Equal to TFLite bit for bit.

Source: TFLite kernels/batch_matmul.cc, internal/reference/batch_matmul.h.
"""

from __future__ import annotations

import numpy as np

from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.accumulate.products import sequential_products
from tflq.interpreter.operands.batch_matmul import Adjoints, require_product
from tflq.interpreter.operands.checks import require_same_type, require_type


def lower(node: Node, operands: Operands) -> Adjoints:
    """Check the operands.

    Raises:
        UnsupportedError: a type other than float32.
        GraphError: shapes that do not multiply.
    """
    require_type(operands.input(0), (DType.FLOAT32,))
    require_same_type(operands.input(0), operands.input(1), operands.output())
    return Adjoints(*require_product(node, operands)[:2])


def run(params: Adjoints, x: Array, y: Array) -> tuple[Array, ...]:
    """Run BATCH_MATMUL: float32[S or 1, ..., A, K], float32[S or 1, ..., K, B] -> float32[S, ..., A, B]."""
    left, right = params.factors(x, y)
    return (sequential_products(left.astype(np.float32), right.astype(np.float32)),)
