"""Sums of MatMul and ConvTranspose in float32, as the Optimizer's own forward adds them.

Source: docs/rules/aipu/values.md#linear-layers.

The float libraries of the Optimizer's forward (MKL, oneDNN): their code depends on the processor.

Its forward calls PyTorch; the order of the sums depends on PyTorch's library (MKL, oneDNN). Determined by trial on
processors with AVX-512, from both makers; sums up to 2^24 are exact in any order.

MatMul: in the order of k, each step a fused multiply-add. In stacks of matrices of fewer than 400 multiplications each
PyTorch's own loop rounds the product, too; on AMD's processors MKL does so below 12 columns.

ConvTranspose: small ones are such a product, channels of all taps by pixels; the sums of each tap are then added, last
to first. If both sides of the kernel are above 3, or a layer has several images or more than 20480 values, oneDNN
convolves: without a stride or if the stride divides the kernel, one fused sum over the rows of a column of taps, and
then the columns, last to first without a stride, else first to last; any other stride: one fused sum over all taps,
first to last. The bias is added last.

The addend of zp_x for each output is PyTorch's own sum (accumulate/sequential.py), in biases and in ConvTranspose's
forward.

Source: docs/rules/aipu/values.md#tables; Compass Optimizer, ops/matmul.py, deconv.py, conv.py
(compute_input_zp_mul_reduce_weight);
PyTorch, aten/src/ATen/native/LinearAlgebra.cpp, Convolution.cpp.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import numpy as np

from tflq.arrays import Singles
from tflq.graph import Array, Node
from tflq.interpreter.accumulate.products import fused_products, sequential_products
from tflq.interpreter.accumulate.sequential import cascade_sums
from tflq.interpreter.accumulate.transposed import Slices, Transposed

FLOAT_LIBRARY = "float_library"
"""Requested option: on whose processors with AVX-512 the Optimizer made its tables and sums."""
INTEL, AMD = "intel", "amd"


def library_of(node: Node) -> str:
    """Return INTEL or AMD."""
    return node.attributes.text(FLOAT_LIBRARY, INTEL)


FLOAT_SUMS = "float_sums"
"""Requested option: sums as the Optimizer's forward has them, not exact."""

_FUSED_COLUMNS = {INTEL: 1, AMD: 12}
_SMALL_STACK = 400
_SMALL_KERNEL, _SMALL_IMAGE = 3, 20480

_Tap = tuple[int, int, Slices, Slices]


def sums_of(node: Node) -> str:
    """Return the library that determines the order of a layer's sums; "" if the sums are exact."""
    return library_of(node) if node.attributes.boolean(FLOAT_SUMS, False) else ""


def sums_of_weights(zp: int, weights: Array) -> Singles:
    """Return the sums of zp * w of each output, in float32: integers [O, ...] -> float32[O]."""
    rows = weights.reshape(weights.shape[0], -1).astype(np.float32)
    return cascade_sums(rows * np.float32(zp)) if zp else np.zeros(len(rows), np.float32)


def float_products(x: Array, y: Array, rank: int, library: str = INTEL) -> Singles:
    """Return x @ y of integers in float32: [..., A, K] and [..., K, B] -> float32[..., A, B].

    Args:
        x: Integers that float32 represents exactly.
        y: likewise.
        rank: Rank of the operands in the layer; stacks of small matrices have more than 2.
        library: INTEL or AMD.
    """
    columns = y.shape[-1]
    is_small = rank > 2 and x.shape[-2] * x.shape[-1] * columns < _SMALL_STACK
    left, right = x.astype(np.float32), y.astype(np.float32)
    if is_small or columns < _FUSED_COLUMNS[library]:
        return sequential_products(left, right)
    return fused_products(left, right)


def float_transposed(prepared: Transposed, x: Array, bias: Array, library: str = INTEL) -> Singles:
    """Return sums with bias in float32: [S, N, H, W, C] -> [S, N, OH, OW, O].

    Args:
        prepared: weights and window.
        x: x + zp_x.
        bias: float32[O], zp_x not folded in.
        library: INTEL or AMD.
    """
    window, image = prepared.place.window, x.shape[1:]
    is_convolved = min(window.kernel) > _SMALL_KERNEL or image[0] > 1 or np.prod(image) > _SMALL_IMAGE
    total = _convolve_transposed(prepared, x) if is_convolved else _by_taps(prepared, x, library)
    return total + bias.astype(np.float32)


def _by_taps(prepared: Transposed, x: Array, library: str) -> Singles:
    """Return the product of all pixels and taps, summed tap by tap, last to first."""
    weights = np.moveaxis(prepared.columns, 2, 0)
    kernel = weights.shape[1:]
    total = np.zeros((*x.shape[:2], *prepared.place.output, kernel[-1]), np.float32)
    rows = x.reshape(*x.shape[:2], -1, x.shape[-1])
    products = float_products(rows, weights.reshape(weights.shape[0], -1), 2, library)
    products = products.reshape(*x.shape[:4], *kernel)
    for ky, kx, source, target in prepared.place.taps((x.shape[2], x.shape[3])):
        total[target] += products[source][..., ky, kx, :]
    return total


def _convolve_transposed(prepared: Transposed, x: Array) -> Singles:
    """Return fused sums over columns of taps, added in turn, or one over all taps."""
    window = prepared.place.window
    taps = list(prepared.place.taps((x.shape[2], x.shape[3])))
    if window.stride != (1, 1):
        taps.reverse()
    if any(side % stride for side, stride in zip(window.kernel, window.stride, strict=True)):
        return _fused_over(prepared, x, taps)
    total = np.zeros((*x.shape[:2], *prepared.place.output, prepared.columns.shape[-1]), np.float32)
    is_falling = window.stride == (1, 1)
    columns = sorted(taps, key=lambda tap: -tap[1] if is_falling else tap[1])
    for _, column in groupby(columns, key=lambda tap: tap[1]):
        total += _fused_over(prepared, x, list(column))
    return total


def _fused_over(prepared: Transposed, x: Array, taps: Sequence[_Tap]) -> Singles:
    """Return one fused sum over taps in this order, and the channels of each; a tap that does not reach adds 0."""
    channels, outputs = prepared.columns.shape[-2:]
    size = (*x.shape[:2], *prepared.place.output)
    rows = np.zeros((*size, len(taps), channels), np.float32)
    for k, (_, _, source, target) in enumerate(taps):
        rows[..., k, :][target] = x[source]
    weights = np.stack([prepared.columns[ky, kx] for ky, kx, _, _ in taps]).astype(np.float32)
    return fused_products(rows.reshape(*size, -1), weights.reshape(-1, outputs))
