"""Sums of float32 in the order of TFLite's reference kernels, or of PyTorch: bit for bit, not only nearly.

TFLite: total = 0; for ky, kx, c in this order: total = f32(total + f32(x * w)); no fused multiply-add; taps outside the
image are skipped. The order is along the reduction, so whole rows of outputs are processed at once.

A skipped tap and an added product of zero are the same, because a total that starts at +0 never becomes -0. Only 0 *
infinity and 0 * NaN differ; if weights are not finite, products outside the image are set to 0.

PyTorch (`vector_sum`): a row is read as groups of 8 numbers, one for each lane of a vector. Four vectors are added side
by side: vector v belongs to chain v mod 4. A chain adds its vectors to a first total; after every 2^p of them that
total moves into a second, after every 2^p moves the second into a third and so on, four in all, p = max(4, ceil(log2 n)
div 4) for n vectors a chain. At the end each chain adds its totals, first to last; vectors after the last whole group
of four are added to the first chain; then the chains are added, and at last the remaining numbers of the row in order,
and the lanes. Rows of fewer than 8 numbers are added likewise, number by number in place of vectors.

The lanes are 8 whatever the processor has: PyTorch compiles this loop for AVX2 at most. With several threads PyTorch
cuts a single row of more than 32767 numbers in parts; here it stays whole, as with OMP_NUM_THREADS=1.

Source: PyTorch 2.13, aten/src/ATen/native/cpu/SumKernel.cpp, the reference of these sums
(tests/interpreter/aipu/test_float_sums.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from tflq.arrays import Singles
from tflq.interpreter.accumulate import taps
from tflq.interpreter.accumulate.patches import padded, patches, strided_view
from tflq.interpreter.operands.sliding_windows import Pair, Window
from tflq.interpreter.recording.primitive import primitive

BLOCK = 1 << 16
"""Totals at a time; they and their products stay in the second-level cache."""
RUN = 1 << 12
"""Neighboring totals that one factor meets, where there are so many: what numpy starts anew for each costs as much."""

COLUMNS = 1 << 17
"""Elements that the taps of a depthwise convolution see at a time; they stay in the second-level cache."""
SHORT = 512
"""Runs below it leave the outer product to the BLAS, which starts nothing anew."""

_FLOAT32 = np.dtype(np.float32)


@primitive("sum of products", "over the taps, in order, each rounded to float32", taps.of_sequential_product)
def sequential_product(x: Singles, weights: Singles) -> Singles:
    """Return total[p, o] over k of x[p, k] * weights[o, k], in order of k.

    Args:
        x: [P, K].
        weights: [O, K].

    Returns:
        [P, O].
    """
    return _sum_in_order(np.ascontiguousarray(x.T), np.ascontiguousarray(weights.T), None)


@primitive("sum of products", "over the taps, in order, each rounded to float32", taps.of_sequential_convolution)
def sequential_convolution(x: Singles, weights: Singles, window: Window, groups: int) -> Singles:
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
    """Return which taps are inside an image: [OH, OW, KH, KW]."""
    ones = np.ones((1, *size, 1), np.float32)
    return np.asarray(patches(padded(ones, window, 0.0, _FLOAT32), window, output)[0, ..., 0] != 0)


def _grouped(
    images: Singles, weights: Singles, window: Window, inside: NDArray[np.bool_] | None, result: Singles
) -> None:
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


def _columns(image: Singles, window: Window, output: Pair) -> Singles:
    """Return the elements of a padded image [C, B, Hp, Wp] that each tap reads: [KH * KW * C, B * OH * OW]."""
    channel, batch, row, column = image.strides
    steps = (row * window.dilation[0], column * window.dilation[1], channel, batch)
    seen = strided_view(
        image,
        (*window.kernel, image.shape[0], image.shape[1], *output),
        (*steps, row * window.stride[0], column * window.stride[1]),
    )
    columns: Singles = np.ascontiguousarray(seen, np.float32).reshape(-1, image.shape[1] * output[0] * output[1])
    return columns


def _depthwise(
    images: Singles, weights: Singles, window: Window, inside: NDArray[np.bool_] | None, result: Singles
) -> None:
    """Convolve as `_grouped`, one input channel in each group: whole rows of pixels at a time."""
    count, height, width, outputs = result.shape
    multiplier = outputs // images.shape[3]
    spread = images if multiplier == 1 else np.repeat(images, multiplier, axis=-1)
    image = padded(spread, window, 0.0, _FLOAT32)
    tiled: Singles = np.empty((*window.kernel, width, outputs), np.float32)
    tiled[...] = weights[..., 0].transpose(1, 2, 0)[:, :, None]
    factors = tiled.reshape(-1, width * outputs)
    row = factors.size
    several = max(1, COLUMNS // max(1, row * height))
    lines = min(height, max(1, COLUMNS // max(1, row)))
    batch, down, across, channel = image.strides
    steps = (down * window.dilation[0], across * window.dilation[1])
    pixels = (batch, down * window.stride[0], across * window.stride[1], channel)
    for b, top in product(range(0, count, several), range(0, height, lines)):
        part = result[b : b + several, top : top + lines]
        start = b * batch + top * pixels[1]
        seen = strided_view(image, (*window.kernel, *part.shape), (*steps, *pixels), start)
        columns: Singles = np.ascontiguousarray(seen, np.float32).reshape(len(factors), -1, width * outputs)
        outside = None if inside is None else ~inside[top : top + lines].transpose(2, 3, 0, 1)[:, :, None, :, :, None]
        part[...] = _sum_taps(columns, factors, outside, (*window.kernel, *part.shape)).reshape(part.shape)


def _sum_taps(columns: Singles, factors: Singles, skip: NDArray[np.bool_] | None, shape: tuple[int, ...]) -> Singles:
    """Return total[p, r] = sum over t of columns[t, p, r] * factors[t, r] in order of t, r at least two.

    Args:
        columns: [T, P, R], contiguous.
        factors: [T, R], contiguous.
        skip: products to leave out, of the shape of `shape` after broadcasting.
        shape: Shape of the columns, [KH, KW, B, OH, OW, O].
    """
    if skip is None and _einsum_is_in_order():
        return np.asarray(np.einsum("tpr,tr->pr", columns, factors))
    products = columns * factors[:, None]
    if skip is not None:
        np.copyto(products.reshape(shape), 0, where=skip)
    total: Singles = np.zeros_like(columns[0])
    for one in products:
        total += one
    return total


def _sum_in_order(columns: Singles, weights: Singles, inside: NDArray[np.bool_] | None) -> Singles:
    """Return total[p, o] = sum over k of columns[k, p] * weights[k, o] in order of k; inside: bool[K, P] or None.

    Both are stored in rows of k.
    """
    depth, places = columns.shape
    outputs = weights.shape[1]
    if depth == 0:
        return np.zeros((places, outputs), np.float32)
    if inside is None and _einsum_is_in_order():
        return _einsum(columns, weights)
    if places >= outputs:
        return np.transpose(_sum_rows(weights, columns, None if inside is None else ~inside))
    swapped = None if inside is None else ~np.broadcast_to(inside[:, :, None], (depth, places, outputs))
    return _sum_rows(columns, weights, swapped)


def _einsum(columns: Singles, weights: Singles) -> Singles:
    """Sum as `_sum_in_order` by numpy's einsum, which walks along memory: k is outside, the longer axis inside.

    Of a single total k would be the inner loop, which adds in another order; so it is computed twice.
    """
    if columns.shape[1] >= weights.shape[1] > 1:
        return np.transpose(np.einsum("kp,ko->op", columns, weights))
    if weights.shape[1] == 1 == columns.shape[1]:
        return np.asarray(np.einsum("kp,ko->po", columns, np.repeat(weights, 2, axis=1))[:, :1])
    return np.asarray(np.einsum("kp,ko->po", columns, weights))


@cache
def _einsum_is_in_order() -> bool:
    """Return whether this numpy's einsum rounds each product and each sum: its code for some processors fuses them.

    Of these 5940 products of 24 bits nearly every one is rounded.
    """
    for places, outputs in ((1, 36), (5, 36), (36, 5), (1, 1)):
        columns = np.modf(np.arange(1, 33 * places + 1, dtype=np.float32) * np.float32(0.6180339))[0] - np.float32(0.5)
        weights = np.modf(np.arange(1, 33 * outputs + 1, dtype=np.float32) * np.float32(0.4142135))[0] - np.float32(0.5)
        first, second = columns.reshape(33, places), weights.reshape(33, outputs)
        if not np.array_equal(_einsum(first, second), _sum_rows(first, second, None)):
            return False
    return True


def _sum_rows(factors: Singles, rows: Singles, skip: NDArray[np.bool_] | None) -> Singles:
    """Return total[i, j] = sum over k of factors[k, i] * rows[k, j] in order of k, blockwise.

    The BLAS computes the outer product of a column and a row as well: each element is one product of finite numbers,
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
    """Let numpy read repeated elements in place: it copies shorter runs than its buffer, which takes longer."""
    before = np.setbufsize(16)
    try:
        yield
    finally:
        np.setbufsize(before)


_LANES = 8
_CHAINS = 4
_LEVELS = 4
_LEAST_POWER = 4


def cascade_sums(rows: Singles) -> Singles:
    """Return the sum of each row: float32[O, K] -> float32[O], every addition rounded to float32."""
    outputs, size = rows.shape
    columns = np.ascontiguousarray(rows.T)
    if size < _LANES:
        return _chained(columns)
    whole = size // _LANES * _LANES
    lanes = _chained(columns[:whole].reshape(-1, _LANES, outputs))
    total = np.zeros(outputs, np.float32)
    for part in (*columns[whole:], *lanes):
        total += part
    return total


def _chained(vectors: Singles) -> Singles:
    """Return the sum of vectors [V, ...] by four chains."""
    length = len(vectors) // _CHAINS
    chains = _leveled(vectors[: length * _CHAINS].reshape(length, _CHAINS, *vectors.shape[1:]))
    total: Singles = chains[0]
    for part in (*vectors[length * _CHAINS :], *chains[1:]):
        total = total + part
    return total


def _leveled(vectors: Singles) -> Singles:
    """Return the sum of vectors [V, ...] by four totals, each of which is emptied into the next."""
    size = len(vectors)
    power = max(_LEAST_POWER, (max(size, 1) - 1).bit_length() // _LEVELS)
    totals = np.zeros((_LEVELS, *vectors.shape[1:]), np.float32)
    for count, vector in enumerate(vectors, 1):
        totals[0] += vector
        for level in range(1, _LEVELS):
            if count % (1 << level * power):
                break
            totals[level] += totals[level - 1]
            totals[level - 1] = 0
    total: Singles = totals[0]
    for part in totals[1:]:
        total = total + part
    return total
