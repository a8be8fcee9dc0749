"""Functions of the Eigen library in float32: tanh, the logistic function, matrix products in its order.

TFLite's recurrent operators use these, not the C library. Without fused multiply-add, as its wheels are built.

Source: Eigen Core/arch/Default/GenericPacketMathFunctions.h (ptanh_float) and Core/functors/UnaryFunctors.h
(scalar_logistic_op<float>).

Matrix products of float32 in the order of the Eigen library on x86 without fused multiply-add.

One vector: four lanes, the total (lane 0 + lane 2) + (lane 1 + lane 3), then the remaining elements in order; one
vector times one row: four accumulators of four lanes, 0 + (1 + (2 + 3)). Several vectors: in order, except that few and
short ones (rows + columns + depth < 20), and one row, are computed as for one vector. From a depth of 505 on Eigen cuts
several vectors into blocks that depend on the size of the first-level cache: the sum here is in order, and TFLite's
differs by machine.

Source: Eigen Core/products/GeneralMatrixVector.h, GeneralMatrixMatrix.h and Core/InnerProduct.h; which TFLite calls
through kernels/cpu_backend_gemm_eigen.cc.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tflq.arrays import Singles
from tflq.interpreter.accumulate import sequential_product
from tflq.interpreter.numerics.transcendental import exp
from tflq.interpreter.recording.primitive import primitive

_LANES = 4
_TANH_REACH = np.float32(7.90738964080810547)
_TANH_NUMERATOR = (1.394553628e-8, 2.102733560e-5, 3.520756727e-3, 1.340216100e-1)
_TANH_DENOMINATOR = (8.015776984e-7, 3.326951409e-4, 2.597254514e-2, 4.673548340e-1, 1.0)
_LOGISTIC_HIGH = np.float32(16.6355324)
_LOGISTIC_LOW = np.float32(-104)
_LOG2_E = np.float32(1.44269504088896341)
_LN2_HIGH, _LN2_LOW = np.float32(-0.693359375), np.float32(2.12194440e-4)
_EVEN = (4.1898667812347412109375e-2, 0.49999141693115234375)
_ODD = (8.33471305668354034423828125e-3, 0.16666877269744873046875)


@primitive("tanh", "tanh({x}), as Eigen computes it in float32")
def tanh(x: Singles) -> Singles:
    """Return x * (1 + x^2 P(x^2)) / Q(x^2) with x cut to +-7.907, the point at which it reaches 1."""
    with np.errstate(invalid="ignore"):
        cut = _clamp(x, -_TANH_REACH, _TANH_REACH)
        square: Singles = cut * cut
        cube: Singles = square * cut
        top: Singles = cube * _polynomial(square, _TANH_NUMERATOR) + cut
        return top / _polynomial(square, _TANH_DENOMINATOR)


@primitive("logistic", "1 / (1 + exp(-{x})), as Eigen computes it in float32")
def logistic(x: Singles, scalars: NDArray[np.bool_] | None = None) -> Singles:
    """Return e / (1 + e) with e = exp(x / 2)^2.

    Args:
        x: float32[..., n].
        scalars: bool[n], elements that do not fill a vector and take the C library's exp (`scalars_of`).
    """
    with np.errstate(all="ignore"):
        half: Singles = np.minimum(x, _LOGISTIC_HIGH) * np.float32(0.5)
        power: Singles = np.floor(half * _LOG2_E + np.float32(0.5))
        rest: Singles = power * _LN2_LOW + (power * _LN2_HIGH + half)
        square: Singles = rest * rest
        middle: Singles = rest * _polynomial(square, _ODD) + _polynomial(square, _EVEN)
        root: Singles = np.ldexp(square * middle + (rest + np.float32(1)), power.astype(np.int32))
        e: Singles = root * root
        result: Singles = np.where(x < _LOGISTIC_LOW, np.float32(0), e / (np.float32(1) + e))
        if scalars is not None and scalars.any():
            single = exp(np.minimum(x[..., scalars], _LOGISTIC_HIGH))
            result[..., scalars] = single / (np.float32(1) + single)
        return result


def scalars_of(size: int, offset: int = 0) -> NDArray[np.bool_]:
    """Return which elements of a vector do not fill registers of four: bool[size].

    Args:
        size: Size of the vector.
        offset: elements between a boundary of 16 bytes and the vector.
    """
    head = min(-offset % _LANES, size)
    tail = (size - head) % _LANES
    place = np.arange(size)
    return (place < head) | (place >= size - tail)


def _polynomial(x: Singles, coefficients: Sequence[float]) -> Singles:
    total: Singles = np.full_like(x, np.float32(coefficients[0]))
    for coefficient in coefficients[1:]:
        total = total * x + np.float32(coefficient)
    return total


def _clamp(x: Singles, low: np.float32, high: np.float32) -> Singles:
    return np.maximum(np.minimum(x, high), low)


_PRODUCT_LANES = 4
_ACCUMULATORS = 4
_FEW = 20


def eigen_product(x: Singles, weights: Singles, together: bool) -> Singles:
    """Multiply float32[..., B, K] by the transpose of float32[O, K].

    Args:
        x: vectors.
        weights: matrix.
        together: whether the B vectors are multiplied in one product; else each on its own.

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


def _by_lanes(rows: Singles, weights: Singles) -> Singles:
    """Rows [P, K], weights [O, K] -> [P, O]."""
    depth = rows.shape[1]
    whole = depth // _PRODUCT_LANES * _PRODUCT_LANES
    across, columns = np.ascontiguousarray(rows.T), np.ascontiguousarray(weights.T)
    lanes: Singles = np.zeros((_PRODUCT_LANES, rows.shape[0], weights.shape[0]), np.float32)
    for k in range(0, whole, _PRODUCT_LANES):
        lanes += across[k : k + _PRODUCT_LANES, :, None] * columns[k : k + _PRODUCT_LANES, None, :]
    total: Singles = (lanes[0] + lanes[2]) + (lanes[1] + lanes[3])
    for k in range(whole, depth):
        total = total + across[k, :, None] * columns[k]
    return total


def _inner(rows: Singles, weights: Singles) -> Singles:
    """Rows [P, K], weights [K] -> [P]."""
    products: Singles = rows * weights
    depth = products.shape[1]
    packets = depth // _PRODUCT_LANES
    if packets == 0:
        return _in_order(products[:, 0], products[:, 1:])
    held = [products[:, _PRODUCT_LANES * j : _PRODUCT_LANES * (j + 1)] for j in range(min(packets, _ACCUMULATORS))]
    for j in range(_ACCUMULATORS, packets):
        held[j % _ACCUMULATORS] = held[j % _ACCUMULATORS] + products[:, _PRODUCT_LANES * j : _PRODUCT_LANES * (j + 1)]
    lanes = held[-1]
    for accumulator in reversed(held[:-1]):
        lanes = accumulator + lanes
    total: Singles = (lanes[:, 0] + lanes[:, 2]) + (lanes[:, 1] + lanes[:, 3])
    return _in_order(total, products[:, packets * _PRODUCT_LANES :])


def _in_order(total: Singles, rest: Singles) -> Singles:
    for k in range(rest.shape[1]):
        total = total + rest[:, k]
    return total
