"""Sums of float32 products in the one order that TFLite's reference kernels use: bit for bit, not only nearly.

total = 0; for ky, kx, c in this order: total = f32(total + f32(x * w)); no fused multiply-add; taps outside the image
are skipped. The order lies along the reduction, so whole rows of outputs go through it at once.

A skipped tap and an added product of zero are the same, because a total that starts at +0 never becomes -0. Only
0 * infinity and 0 * NaN differ; where weights are not finite, products outside the image are set to 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product

import numpy as np
from numpy.typing import NDArray

from tflq.interpreter.accumulate import taps
from tflq.interpreter.accumulate.image import deal_columns, padded, patches, strided_view
from tflq.interpreter.accumulate.window import Pair, Window
from tflq.interpreter.recording.primitive import primitive

Floats = NDArray[np.float32]

BLOCK = 1 << 16
"""Totals at a time; they and their products stay in the second-level cache."""
RUN = 1 << 12
"""Neighbouring totals that one factor meets, where there are so many: what numpy starts anew for each costs as much."""
SMALL = 1 << 18
"""Products that are made before they are summed by one call."""
FEW = 1 << 12
"""Totals up to this many go that way: two calls for each product of a total cost more."""

SHORT = 512
"""Runs below it leave the outer product to the BLAS, which starts nothing anew."""

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
    return _sum_in_order(np.ascontiguousarray(x.T), np.ascontiguousarray(weights.T), None)


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
    inside = None if np.isfinite(weights).all() else _inside(images.shape[1:3], window, output)
    convolve = _depthwise if depth == 1 and groups > 1 else _grouped
    together = max(1, RUN // max(1, output[0] * output[1]))
    for start in range(0, images.shape[0], together):
        part = slice(start, start + together)
        convolve(images[part], weights, window, inside, result[part])
    return result.reshape(*x.shape[:2], *output, outputs)


def _inside(size: Pair, window: Window, output: Pair) -> NDArray[np.bool_]:
    """Return which taps lie inside an image: [OH, OW, KH, KW]."""
    ones = np.ones((1, *size, 1), np.float32)
    return np.asarray(patches(padded(ones, window, 0.0, _FLOAT32), window, output)[0, ..., 0] != 0)


def _grouped(images: Floats, weights: Floats, window: Window, inside: NDArray[np.bool_] | None, result: Floats) -> None:
    """Convolve images [B, H, W, C] into the result [B, OH, OW, O]."""
    count, height, width, outputs = result.shape
    depth = weights.shape[3]
    groups = images.shape[3] // depth
    image = np.ascontiguousarray(padded(images, window, 0.0, _FLOAT32).transpose(3, 0, 1, 2))
    mask = None
    if inside is not None:
        taken = np.repeat(inside.transpose(2, 3, 0, 1).reshape(-1, 1, height * width), count, axis=1)
        mask = np.repeat(taken.reshape(taken.shape[0], -1), depth, axis=0)
    for g in range(groups):
        columns = _columns(image[g * depth : (g + 1) * depth], window, (height, width))
        own = slice(g * (outputs // groups), (g + 1) * (outputs // groups))
        rows = np.ascontiguousarray(weights[own].reshape(outputs // groups, -1).T)
        result[..., own] = _sum_in_order(columns, rows, mask).reshape(count, height, width, -1)


def _columns(image: Floats, window: Window, output: Pair) -> Floats:
    """Return what each tap sees of a padded image [C, B, Hp, Wp]: [KH * KW * C, B * OH * OW]."""
    channel, batch, row, column = image.strides
    steps = (row * window.dilation[0], column * window.dilation[1], channel, batch)
    seen = strided_view(
        image,
        (*window.kernel, image.shape[0], image.shape[1], *output),
        (*steps, row * window.stride[0], column * window.stride[1]),
    )
    columns: Floats = np.ascontiguousarray(seen, np.float32).reshape(-1, image.shape[1] * output[0] * output[1])
    return columns


def _depthwise(
    images: Floats, weights: Floats, window: Window, inside: NDArray[np.bool_] | None, result: Floats
) -> None:
    """Convolve as `_grouped`, one input channel in each group: whole rows of pixels at a time."""
    count, height, width, outputs = result.shape
    multiplier = outputs // images.shape[3]
    spread = images if multiplier == 1 else np.repeat(images, multiplier, axis=-1)
    dealt = deal_columns(spread, window, (height, width), 0, _FLOAT32)
    run, stride = width * outputs, window.stride[1]
    several = max(1, BLOCK // max(1, run * height))
    lines = min(height, max(1, BLOCK // max(1, run)))
    factors = np.tile(weights[..., 0].transpose(1, 2, 0), (1, 1, width))
    rows = result.reshape(count, height, run)
    with _unbuffered():
        for b, top in product(range(0, count, several), range(0, height, lines)):
            total = np.zeros_like(rows[b : b + several, top : top + lines])
            one = np.empty_like(total)
            for ky, kx in np.ndindex(*window.kernel):
                first, column = top * window.stride[0] + ky * window.dilation[0], kx * window.dilation[1]
                last = first + (total.shape[1] - 1) * window.stride[0] + 1
                seen = dealt[b : b + several, first : last : window.stride[0], column % stride]
                pixels = seen[:, :, column // stride : column // stride + width].reshape(total.shape)
                np.multiply(pixels, factors[ky, kx], out=one)
                if inside is not None:
                    one.reshape(*one.shape[:2], width, outputs)[:, ~inside[top : top + lines, :, ky, kx]] = 0
                np.add(total, one, out=total)
            rows[b : b + several, top : top + lines] = total


def _sum_in_order(columns: Floats, weights: Floats, inside: NDArray[np.bool_] | None) -> Floats:
    """Return total[p, o] = sum over k of columns[k, p] * weights[k, o] in order of k; inside: bool[K, P] or None."""
    depth, places = columns.shape
    outputs = weights.shape[1]
    if depth == 0:
        return np.zeros((places, outputs), np.float32)
    if places * outputs <= FEW:
        return _sum_few(columns, weights, inside)
    if places >= outputs:
        return np.transpose(_sum_rows(weights, columns, None if inside is None else ~inside))
    swapped = None if inside is None else ~np.broadcast_to(inside[:, :, None], (depth, places, outputs))
    return _sum_rows(columns, weights, swapped)


def _sum_few(columns: Floats, weights: Floats, inside: NDArray[np.bool_] | None) -> Floats:
    """Sum as `_sum_in_order`: add.reduce adds row to row along the slow axis of memory, and pairwise along the fast."""
    total: Floats = np.zeros(columns.shape[1] * weights.shape[1], np.float32)
    step = max(1, SMALL // max(1, total.size))
    for k in range(0, columns.shape[0], step):
        products: Floats = columns[k : k + step, :, None] * weights[k : k + step, None, :]
        if inside is not None:
            products[~inside[k : k + step]] = 0
        rows = products.reshape(len(products), total.size)
        rows[0] += total
        total = np.add.accumulate(rows)[-1] if total.size == 1 else np.add.reduce(rows, axis=0)
    return total.reshape(columns.shape[1], weights.shape[1])


def _sum_rows(factors: Floats, rows: Floats, skip: NDArray[np.bool_] | None) -> Floats:
    """Return total[i, j] = sum over k of factors[k, i] * rows[k, j] in order of k, blockwise.

    The BLAS gives the outer product of a column and a row as well: each element is one product of finite numbers,
    rounded once, whatever it adds zeros to.

    Args:
        factors: [K, I].
        rows: [K, J], the long axis last.
        skip: bool[K, J] or bool[K, I, J], products to leave out.
    """
    total = np.zeros((factors.shape[1], rows.shape[1]), np.float32)
    width = min(rows.shape[1], RUN)
    height = max(1, BLOCK // width)
    is_finite = bool(np.isfinite(factors).all() and np.isfinite(rows).all())
    outer: Callable[..., object] = np.dot if width < SHORT and is_finite else np.multiply
    starts = product(range(0, total.shape[0], height), range(0, total.shape[1], width))
    with _unbuffered():
        for i, j in starts:
            here = slice(i, i + height), slice(j, j + width)
            part = np.zeros_like(total[here])
            one = np.empty_like(part)
            for k, (factor, row) in enumerate(zip(factors[:, here[0], None], rows[:, None, here[1]], strict=True)):
                outer(factor, row, one)
                if skip is not None:
                    np.copyto(one, 0, where=skip[k][here] if skip.ndim == 3 else skip[k, here[1]])
                np.add(part, one, out=part)
            total[here] = part
    return total


@contextmanager
def _unbuffered() -> Iterator[None]:
    """Let numpy read what it repeats in place: it copies shorter runs than its buffer holds, which takes longer."""
    before = np.setbufsize(16)
    try:
        yield
    finally:
        np.setbufsize(before)
