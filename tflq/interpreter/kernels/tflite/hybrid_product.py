"""Integer dot products of hybrid operators, as TFLite's SSE code computes them (docs/tflite.md).

sum over k of w[o, k] * q[k] - zero_point * sum over k of w[o, k]. Sixteen columns at a time the sign of q is moved to
w, where -(-128) stays -128: a product of w = -128 and q < 0 has the wrong sign there. The remaining columns are right.

Source: TFLite kernels/internal/optimized/sse_tensor_utils.cc (DotProdInt8x4x4).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tflq.graph import Array
from tflq.interpreter.accumulate import MatrixProduct, accumulate_product, prepare_product
from tflq.interpreter.kernels.tflite.hybrid_input import QuantisedRows
from tflq.interpreter.numerics.fixed_point import Integers

_BLOCK = 16
_LARGEST_CODE = 128


@dataclass(frozen=True, eq=False)
class HybridProduct:
    """Weights packed.

    Attributes:
        prepared: of the weights [O, K].
        row_sums: int64[O].
        lowest: of the places in whole blocks where w is -128, as 0 and 1; None where there are none.
    """

    prepared: MatrixProduct
    row_sums: Integers
    lowest: MatrixProduct | None


def signed_weights(weights: Array) -> Array:
    """Return weights as the kernels read them: the bytes of uint8 ones as int8."""
    return weights.view(np.int8) if weights.dtype == np.uint8 else weights


def prepare_hybrid(weights: Array, blocks: bool = True) -> HybridProduct:
    """Make weights ready.

    Args:
        weights: int8[O, K].
        blocks: whether the sum runs in blocks of sixteen; a matrix library's product is right everywhere.
    """
    columns = weights.shape[1] // _BLOCK * _BLOCK if blocks else 0
    lowest = weights[:, :columns] == -_LARGEST_CODE
    return HybridProduct(
        prepare_product(weights, _LARGEST_CODE),
        weights.astype(np.int64).sum(axis=1),
        prepare_product(lowest.astype(np.int8), _LARGEST_CODE) if lowest.any() else None,
    )


def hybrid_product(product: HybridProduct, rows: QuantisedRows) -> NDArray[np.float32]:
    """Return the sums, rounded to float32: quantized values int8[..., K] -> float32[..., O]."""
    total = accumulate_product(product.prepared, rows.codes)
    if product.lowest is not None:
        columns = product.lowest.columns.shape[0]
        extra = accumulate_product(product.lowest, np.minimum(rows.codes[..., :columns], 0))
        total = total.astype(np.int64) + 256 * extra.astype(np.int64)
    if rows.zero_point.any():
        total = total.astype(np.int64) - rows.zero_point[..., None] * product.row_sums
    return total.astype(np.float32)
