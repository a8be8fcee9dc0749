"""Matrix products of float32 in the order of the Eigen library on x86 without fused multiply-add.

One vector: four lanes, the total (lane 0 + lane 2) + (lane 1 + lane 3), then what is left in order; one vector times
one row: four accumulators of four lanes, 0 + (1 + (2 + 3)). Several vectors: in order, except that few and short ones
(rows + columns + depth < 20), and one row, go as for one vector. From a depth of 505 on Eigen cuts several vectors into
blocks that depend on the size of the first-level cache: the sum here is in order, and TFLite's differs by machine.

Source: Eigen Core/products/GeneralMatrixVector.h, GeneralMatrixMatrix.h and Core/InnerProduct.h; which TFLite calls
through kernels/cpu_backend_gemm_eigen.cc.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tflq.interpreter.accumulate import sequential_product

Floats = NDArray[np.float32]

_LANES = 4
_ACCUMULATORS = 4
_FEW = 20


def eigen_product(x: Floats, weights: Floats, together: bool) -> Floats:
    """Multiply float32[..., B, K] by the transpose of float32[O, K].

    Args:
        x: vectors.
        weights: matrix.
        together: whether the B vectors go in one product; else each on its own.

    Returns:
        float32[..., B, O].
    """
    batch, depth = x.shape[-2:]
    outputs = weights.shape[0]
    columns = batch if together else 1
    rows = x.reshape(-1, depth)
    with np.errstate(all="ignore"):
        if columns == 1 and outputs == 1:
            product = _inner(rows, weights[0])[:, None]
        elif columns == 1 or outputs == 1 or depth + outputs + columns < _FEW:
            product = _by_lanes(rows, weights)
        else:
            product = sequential_product(rows, weights)
    return product.reshape(*x.shape[:-1], outputs)


def _by_lanes(rows: Floats, weights: Floats) -> Floats:
    """Rows [P, K], weights [O, K] -> [P, O]."""
    depth = rows.shape[1]
    whole = depth // _LANES * _LANES
    across, columns = np.ascontiguousarray(rows.T), np.ascontiguousarray(weights.T)
    lanes: Floats = np.zeros((_LANES, rows.shape[0], weights.shape[0]), np.float32)
    for k in range(0, whole, _LANES):
        lanes += across[k : k + _LANES, :, None] * columns[k : k + _LANES, None, :]
    total: Floats = (lanes[0] + lanes[2]) + (lanes[1] + lanes[3])
    for k in range(whole, depth):
        total = total + across[k, :, None] * columns[k]
    return total


def _inner(rows: Floats, weights: Floats) -> Floats:
    """Rows [P, K], weights [K] -> [P]."""
    products: Floats = rows * weights
    depth = products.shape[1]
    packets = depth // _LANES
    if packets == 0:
        return _in_order(products[:, 0], products[:, 1:])
    held = [products[:, _LANES * j : _LANES * (j + 1)] for j in range(min(packets, _ACCUMULATORS))]
    for j in range(_ACCUMULATORS, packets):
        held[j % _ACCUMULATORS] = held[j % _ACCUMULATORS] + products[:, _LANES * j : _LANES * (j + 1)]
    lanes = held[-1]
    for accumulator in reversed(held[:-1]):
        lanes = accumulator + lanes
    total: Floats = (lanes[:, 0] + lanes[:, 2]) + (lanes[:, 1] + lanes[:, 3])
    return _in_order(total, products[:, packets * _LANES :])


def _in_order(total: Floats, rest: Floats) -> Floats:
    for k in range(rest.shape[1]):
        total = total + rest[:, k]
    return total
