"""Sums of MatMul and ConvTranspose in float32, as the Optimizer's own forward adds them (docs/aipu.md, 3).

Its forward leaves them to PyTorch, whose libraries add in the order of k. Where the product has 12 columns or more,
each step is a fused multiply-add; below that, and in stacks of matrices of fewer than 400 multiplications each, the
product is rounded too. Found by trial on a processor with AVX-512; with 6 or 10 columns, or a second operand that is
stored turned, the library of some sizes takes an order that is not known, and 1 in thousands of quantized values
differs by 1. Sums up to 2^24 are exact either way.

ConvTranspose: the channels of each tap are such a product; taps are added last to first, then the bias.

Source: Compass Optimizer, ops/matmul.py, deconv.py; PyTorch, aten/src/ATen/native/LinearAlgebra.cpp, bmm.
"""

from __future__ import annotations

import numpy as np

from tflq.graph import Array, Node
from tflq.interpreter.accumulate.products import fused_products, sequential_products
from tflq.interpreter.accumulate.sequential import Floats
from tflq.interpreter.accumulate.transposed import Transposed

FLOAT_SUMS = "float_sums"
"""Requested option: sums as the Optimizer's forward has them, not exact."""

_FUSED_COLUMNS = 12
_SMALL_STACK = 400


def adds_in_float(node: Node) -> bool:
    """Whether a layer's sums are those of the Optimizer's forward."""
    return node.attributes.boolean(FLOAT_SUMS, False)


def float_products(x: Array, y: Array, rank: int) -> Floats:
    """Return x @ y of whole numbers in float32: [..., A, K] and [..., K, B] -> float32[..., A, B].

    Args:
        x: whole numbers that float32 holds.
        y: likewise.
        rank: of the operands in the layer; stacks of small matrices have more than 2.
    """
    columns = y.shape[-1]
    is_small = rank > 2 and x.shape[-2] * x.shape[-1] * columns < _SMALL_STACK
    left, right = x.astype(np.float32), y.astype(np.float32)
    if is_small or columns < _FUSED_COLUMNS:
        return sequential_products(left, right)
    return fused_products(left, right)


def float_transposed(prepared: Transposed, x: Array, bias: Array) -> Floats:
    """Return sums with bias in float32: [S, N, H, W, C] -> [S, N, OH, OW, O].

    Args:
        prepared: weights and window.
        x: x + zp_x.
        bias: float32[O], zp_x not folded in.
    """
    weights = np.moveaxis(prepared.columns, 2, 0)
    kernel = weights.shape[1:]
    total = np.zeros((*x.shape[:2], *prepared.place.output, kernel[-1]), np.float32)
    rows = x.reshape(*x.shape[:2], -1, x.shape[-1])
    products = float_products(rows, weights.reshape(weights.shape[0], -1), 2)
    products = products.reshape(*x.shape[:4], *kernel)
    for ky, kx, source, target in prepared.place.taps((x.shape[2], x.shape[3])):
        total[target] += products[source][..., ky, kx, :]
    return total + bias.astype(np.float32)
