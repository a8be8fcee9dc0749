"""TFLite's vector functions on float32: sums over four lanes, and activations without a clamp to finite numbers.

Sums of float32 in the order of TFLite's vector functions: four lanes, then the lanes, then the remaining elements.

Lane j adds the elements j, j + 4, j + 8, ... in order; the total is ((lane 0 + lane 1) + lane 2) + lane 3; elements
that do not fill four lanes follow one by one. Every product and sum is rounded; nothing is fused.

Source: TFLite kernels/internal/optimized/neon_tensor_utils.cc, which its wheels run on x86 through SSE, also under the
reference kernels (NeonMatrixBatchVectorMultiplyAccumulate, NeonVectorVectorDotProduct, NeonReductionSumVector).

Fused activations of operators that call TFLite's vector functions: no clamp to finite numbers, NaN becomes a bound.

Source: TFLite kernels/internal/portable_tensor_utils.cc and tensor_utils.h (ApplyActivationToVector).
"""

from __future__ import annotations

import numpy as np

from tflq.arrays import Singles
from tflq.errors import UnsupportedError
from tflq.graph.operators import FUSED_ACTIVATIONS
from tflq.interpreter.accumulate.taps import of_lanes, of_rows
from tflq.interpreter.kernels.float.eigen import tanh
from tflq.interpreter.recording.primitive import primitive

LANES = 4


@primitive("sum", "of {x}, in four lanes", of_rows)
def lane_sum(x: Singles) -> Singles:
    """Sum the last axis of float32[..., K]."""
    whole = x.shape[-1] // LANES * LANES
    lanes: Singles = np.zeros((*x.shape[:-1], LANES), np.float32)
    with np.errstate(all="ignore"):
        for k in range(0, whole, LANES):
            lanes = lanes + x[..., k : k + LANES]
        total = _across(np.moveaxis(lanes, -1, 0))
        for k in range(whole, x.shape[-1]):
            total = total + x[..., k]
    return total


def lane_dot(a: Singles, b: Singles) -> Singles:
    """Sum a * b over the last axis: float32[..., K], broadcast against each other."""
    with np.errstate(all="ignore"):
        return lane_sum(a * b)


@primitive("sum of products", "{start} + over the row, in four lanes", of_lanes)
def lane_product(x: Singles, weights: Singles, start: Singles | None = None) -> Singles:
    """Add the product of a matrix with each vector to `start`: first its lanes' total, then each element left.

    Args:
        x: float32[..., K].
        weights: float32[O, K].
        start: float32[..., O]; zeros if it is None.

    Returns:
        float32[..., O].
    """
    depth, outputs = x.shape[-1], weights.shape[0]
    whole = depth // LANES * LANES
    rows = x.reshape(-1, depth)
    columns = np.ascontiguousarray(weights.T)
    with np.errstate(all="ignore"):
        lanes: Singles = np.zeros((LANES, rows.shape[0], outputs), np.float32)
        for k in range(0, whole, LANES):
            lanes += rows.T[k : k + LANES, :, None] * columns[k : k + LANES, None, :]
        before = np.float32(0) if start is None else start.reshape(-1, outputs)
        total: Singles = before + _across(lanes)
        for k in range(whole, depth):
            total = total + rows[:, k, None] * columns[k]
    return total.reshape(*x.shape[:-1], outputs)


def _across(lanes: Singles) -> Singles:
    total: Singles = ((lanes[0] + lanes[1]) + lanes[2]) + lanes[3]
    return total


def require_activation(name: str) -> str:
    """Return the name.

    Raises:
        UnsupportedError: TFLite has no vector function of that name.
    """
    if name not in FUSED_ACTIVATIONS:
        raise UnsupportedError(f"fused activation '{name}'; known are {', '.join(FUSED_ACTIVATIONS)}")
    return name


def activate(x: Singles, name: str) -> Singles:
    """Apply an activation to each row of x: float32[..., n]; max(a, b) is b if a < b, else a."""
    if name == "relu":
        return _at_least(x, 0)
    if name == "relu_n1_to_1":
        return _at_least(np.where(x > 1, np.float32(1), x), -1)
    if name == "relu6":
        return _at_least(np.where(x > 6, np.float32(6), x), 0)
    if name == "tanh":
        return tanh(x)
    if name == "sign_bit":
        return np.signbit(x).astype(np.float32)
    return x


def _at_least(x: Singles, bound: int) -> Singles:
    return np.where(x > bound, x, np.float32(bound))
