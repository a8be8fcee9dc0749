"""Sums of float32 products in the one order that TFLite's reference kernels use: bit for bit, not only nearly.

total = 0; for ky, kx, c in this order: total = f32(total + f32(x * w)); no fused multiply-add; taps outside the image
are skipped. The order lies along the reduction, so whole rows of outputs go through it at once.

A skipped tap and an added product of zero are the same, because a total that starts at +0 never becomes -0. Only
0 * infinity and 0 * NaN differ; where weights are not finite, products outside the image are set to 0.
"""

from __future__ import annotations

from typing import cast

import numpy as np
from numpy.typing import NDArray

from tflq.interpreter.accumulate import taps
from tflq.interpreter.accumulate.image import padded, patches
from tflq.interpreter.accumulate.window import Window
from tflq.interpreter.recording.primitive import primitive

Floats = NDArray[np.float32]

BLOCK = 1 << 14
"""Totals at a time; they and their products stay in the first-level cache."""
SMALL = 1 << 18
"""Products up to this many are summed by one call of `add.accumulate`, which is sequential by definition."""

_FLOAT32 = np.dtype(np.float32)


@primitive("sum of products", "over the taps, in order, each rounded to float32", taps.of_sequential_product)
def sequential_product(x: Floats, weights: Floats) -> Floats:
    """Return total[p, o] over k of x[p, k] * weights[o, k], in order of k.

    Args:
        x: [P, K].
        weights: [O, K].

    Returns:
        [P, O].
    """
    return _sum_in_order(np.ascontiguousarray(x.T), weights, None)


@primitive("sum of products", "over the taps, in order, each rounded to float32", taps.of_sequential_convolution)
def sequential_convolution(x: Floats, weights: Floats, window: Window, groups: int) -> Floats:
    """Convolve in the order (ky, kx, c).

    Args:
        x: [S, N, H, W, C].
        weights: [O, KH, KW, C/groups].
        window: kernel, stride, dilation, padding.
        groups: number of groups; output channel o belongs to group o // (O/groups).

    Returns:
        [S, N, OH, OW, O], without bias.
    """
    images = x.reshape(-1, *x.shape[2:])
    output = window.output_size((x.shape[2], x.shape[3]))
    outputs, depth = weights.shape[0], weights.shape[3]
    result = np.empty((images.shape[0], *output, outputs), np.float32)
    for start in range(images.shape[0]):
        one = images[start : start + 1]
        seen = cast(Floats, patches(padded(one, window, 0.0, _FLOAT32), window, output)[0])
        inside = None if np.isfinite(weights).all() else _inside(one, window, output)
        if depth == 1 and groups > 1:
            result[start] = _depthwise(seen, weights, groups, inside)
        else:
            result[start] = _grouped(seen, weights, groups, inside)
    return result.reshape(*x.shape[:2], *output, outputs)


def _inside(image: Floats, window: Window, output: tuple[int, int]) -> NDArray[np.bool_]:
    """Return which taps lie inside the image: [OH, OW, KH, KW]."""
    ones = np.ones((1, *image.shape[1:3], 1), np.float32)
    return np.asarray(patches(padded(ones, window, 0.0, _FLOAT32), window, output)[0, ..., 0] != 0)


def _grouped(seen: Floats, weights: Floats, groups: int, inside: NDArray[np.bool_] | None) -> Floats:
    height, width = seen.shape[:2]
    outputs, depth = weights.shape[0] // groups, weights.shape[3]
    parts = []
    for g in range(groups):
        part = seen[..., g * depth : (g + 1) * depth]
        columns = np.ascontiguousarray(part.transpose(2, 3, 4, 0, 1)).reshape(-1, height * width)
        mask = None
        if inside is not None:
            mask = np.repeat(inside.transpose(2, 3, 0, 1).reshape(-1, height * width), depth, axis=0)
        rows = weights[g * outputs : (g + 1) * outputs].reshape(outputs, -1)
        parts.append(_sum_in_order(columns, rows, mask))
    return np.concatenate(parts, axis=1).reshape(height, width, weights.shape[0])


def _depthwise(seen: Floats, weights: Floats, groups: int, inside: NDArray[np.bool_] | None) -> Floats:
    height, width, rows, columns = seen.shape[:4]
    multiplier = weights.shape[0] // groups
    total = np.zeros((height, width, weights.shape[0]), np.float32)
    for ky in range(rows):
        for kx in range(columns):
            product = np.repeat(seen[:, :, ky, kx], multiplier, axis=-1) * weights[:, ky, kx, 0]
            if inside is not None:
                product[~inside[:, :, ky, kx]] = 0
            total += product
    return total


def _sum_in_order(columns: Floats, weights: Floats, inside: NDArray[np.bool_] | None) -> Floats:
    """Return total[p, o] = sum over k of columns[k, p] * weights[o, k] in order of k; inside: bool[K, P] or None."""
    depth, places = columns.shape
    outputs = weights.shape[0]
    if depth == 0:
        return np.zeros((places, outputs), np.float32)
    if depth * places * outputs <= SMALL:
        products: Floats = columns[:, :, None] * np.ascontiguousarray(weights.T)[:, None, :]
        if inside is not None:
            products[~inside] = 0
        np.add.accumulate(products, axis=0, out=products)
        last: Floats = products[-1]
        last += 0  # -0 becomes the +0 of a total that starts at 0
        return last
    if places >= outputs:
        return np.transpose(_sum_rows(weights, columns, None if inside is None else ~inside))
    swapped = None if inside is None else ~np.broadcast_to(inside[:, :, None], (depth, places, outputs))
    return _sum_rows(np.ascontiguousarray(columns.T), np.ascontiguousarray(weights.T), swapped)


def _sum_rows(factors: Floats, rows: Floats, skip: NDArray[np.bool_] | None) -> Floats:
    """Return total[i, j] = sum over k of factors[i, k] * rows[k, j] in order of k, blockwise along j.

    Args:
        factors: [I, K].
        rows: [K, J], the long axis last.
        skip: bool[K, J] or bool[K, I, J], products to leave out.
    """
    total = np.zeros((factors.shape[0], rows.shape[1]), np.float32)
    step = max(1, BLOCK // factors.shape[0])
    for start in range(0, rows.shape[1], step):
        part = np.zeros((factors.shape[0], min(step, rows.shape[1] - start)), np.float32)
        product = np.empty_like(part)
        for k in range(rows.shape[0]):
            np.multiply(factors[:, k, None], rows[k, start : start + step], out=product)
            if skip is not None:
                np.copyto(product, 0, where=skip[k, ..., start : start + step])
            np.add(part, product, out=part)
        total[:, start : start + step] = part
    return total
