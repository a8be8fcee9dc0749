"""Exact accumulators of convolutions over images stored with samples last (layout.py).

Dense ones multiply the weights [O, K] with patches [K, pixels * S]; images of 1x1 kernels are such patches already.

Depthwise ones are products of band matrices: some rows of a channel of the padded image, all their columns and samples,
are one matrix [rows * W, S] in memory, and one or more rows of outputs are T [R * OW, rows * W] times it; T contains
the taps at their places between zeros. That is rows * W / taps times as many products as are needed, and still faster
than sums of a few taps, because they run in the BLAS.
"""

from __future__ import annotations

from functools import lru_cache
from weakref import WeakKeyDictionary

import numpy as np

from tflq.graph import Array
from tflq.interpreter.accumulate.convolution import Convolution, accumulate_convolution
from tflq.interpreter.accumulate.depthwise import Depthwise
from tflq.interpreter.accumulate.patches import deal_columns, strided_view
from tflq.interpreter.layout import COSTS, is_samples_last, logical, stored
from tflq.interpreter.operands.sliding_windows import Pair, Window

PATCH_BYTES = 1 << 20
"""Bytes of copied patches at a time."""
BAND_BYTES = 1 << 24
"""Largest size of the band matrices of one layer."""
_FLOAT32 = np.dtype(np.float32)


_bands: WeakKeyDictionary[Depthwise, dict[Pair, Array]] = WeakKeyDictionary()
"""The band matrices of a layer for images of a size: float32[C, 1, R * OW, K], K = ((R - 1) * stride + KH) * W."""


def can_run_samples_last(prepared: Convolution, image: Pair) -> bool:
    """Whether `accumulate_samples_last` runs this convolution over images of this size."""
    if prepared.dtype != _FLOAT32:
        return False
    if prepared.depthwise is None:
        return len(prepared.columns) == 1
    return _has_bands(prepared.depthwise, image)


def samples_last_gain(prepared: Convolution, image: Pair) -> float:
    """Estimate how many nanoseconds a sample gains by samples last; negative if it loses.

    Depthwise ones gain if products with a band matrix cost less than taps; dense ones lose (layout.py).
    """
    height, width = prepared.window.output_size(image)
    outputs = height * width * prepared.channels[1]
    if prepared.depthwise is not None:
        length = products_per_output(prepared.window, image)
        first = COSTS.depthwise_output + prepared.window.taps * COSTS.depthwise_tap
        return outputs * (first - length * COSTS.band_product)
    products = outputs * prepared.channels[0] * prepared.window.taps
    dense = next(d for d in COSTS.dense if prepared.channels[1] <= d.channels)
    return -products * (dense.last - dense.first)


def products_per_output(window: Window, image: Pair) -> int:
    """Return how many products with a band matrix an output of a depthwise convolution takes."""
    return _band_length(window, image, _rows_at_a_time(window, image))


def accumulate_in_order(prepared: Convolution, x: Array, pad_value: int) -> Array:
    """Accumulate in the order that the images have in memory: with samples last if they are stored so, else first.

    Arguments and result as for `accumulate_convolution`.
    """
    if is_samples_last(x) and can_run_samples_last(prepared, (x.shape[2], x.shape[3])):
        return accumulate_samples_last(prepared, x, pad_value)
    return accumulate_convolution(prepared, x, pad_value)


def gain_in_order(prepared: Convolution, is_mapped: bool, image: Pair) -> float | None:
    """Return the gain of images with samples last, in ns a sample; None if they are not supported or slower.

    Args:
        prepared: weights and window, for images that `accumulate_in_order` takes.
        is_mapped: whether a proven map takes accumulators to quantized values; the integer rule itself is as slow in
            any order.
        image: height and width of the input.
    """
    if not is_mapped or not can_run_samples_last(prepared, image):
        return None
    return samples_last_gain(prepared, image)


def accumulate_samples_last(prepared: Convolution, x: Array, pad_value: int) -> Array:
    """acc[..., o] = sum over taps and channels of x * w, exactly, as `accumulate_convolution`.

    Args:
        prepared: Weights and window accepted by `can_run_samples_last`.
        x: integers [S, N, H, W, C] with samples last.
        pad_value: the code outside the image.

    Returns:
        float32[S, N, OH, OW, O] with samples last, exact integers.
    """
    images = stored(x)
    if prepared.depthwise is not None:
        return logical(_sum_bands(prepared.depthwise, images, pad_value))
    if prepared.is_product:
        columns = images.reshape(*images.shape[:2], -1).astype(_FLOAT32)
        product: Array = np.matmul(prepared.rows, columns)
        return logical(product.reshape(images.shape[0], -1, *images.shape[2:]))
    output = prepared.window.output_size((x.shape[2], x.shape[3]))
    result = np.empty((images.shape[0], prepared.channels[1], *output, images.shape[4]), _FLOAT32)
    for image, out in zip(images, result, strict=True):
        dealt = deal_columns(image, prepared.window, output, pad_value, _FLOAT32)
        _multiply_patches(prepared, dealt, out)
    return logical(result)


def _multiply_patches(prepared: Convolution, image: Array, out: Array) -> None:
    """out[o] = weights @ patches of an image dealt out by columns [C, Hp, stride, Wq, S], some rows at a time."""
    window, (outputs, height, width, samples) = prepared.window, out.shape
    depth, channels = prepared.rows.shape[1], image.shape[0]
    step = max(1, PATCH_BYTES // max(1, depth * width * samples * _FLOAT32.itemsize))
    for start in range(0, height, step):
        count = min(step, height - start)
        patches = np.empty((*window.kernel, channels, count, width, samples), _FLOAT32)
        for kx in range(window.kernel[1]):
            patches[:, kx] = _column_taps(window, image, kx, start, patches.shape)
        part = out[:, start : start + count].reshape(outputs, -1)
        np.matmul(prepared.rows, patches.reshape(depth, -1), out=part)


def _column_taps(window: Window, image: Array, kx: int, start: int, shape: tuple[int, ...]) -> Array:
    """View the inputs of one column of the kernel: [KH, C, rows, OW, S], from row `start` of the outputs."""
    channel, row, remainder, column, element = image.strides
    q, r = divmod(kx * window.dilation[1], window.stride[1])
    return strided_view(
        image,
        (shape[0], *shape[2:]),
        (row * window.dilation[0], channel, row * window.stride[0], column, element),
        start * window.stride[0] * row + r * remainder + q * column,
    )


def _padded(x: Array, window: Window, pad_value: int, dtype: np.dtype[np.generic]) -> Array:
    """Return [N, C, top + H + bottom, left + W + right, S]."""
    if not any(window.padding) and x.dtype == dtype:
        return x
    count, channels, height, width, samples = x.shape
    size = (height + window.top + window.bottom, width + window.left + window.right)
    image = np.full((count, channels, *size, samples), pad_value, dtype)
    image[:, :, window.top : window.top + height, window.left : window.left + width] = x
    return image


def _sum_bands(depthwise: Depthwise, x: Array, pad_value: int) -> Array:
    """Return float32[N, C, OH, OW, S] of integers [N, C, H, W, S]."""
    window, size = depthwise.window, (x.shape[2], x.shape[3])
    made = _bands.setdefault(depthwise, {})
    matrices = made[size] if size in made else made.setdefault(size, _make_bands(depthwise, size))
    height, width = window.output_size(size)
    rows = matrices.shape[2] // width
    image = _padded(x, window, pad_value, _FLOAT32)
    batch, channel, row, column, element = image.strides
    seen = strided_view(
        image,
        (*x.shape[:2], height // rows, matrices.shape[3], x.shape[4]),
        (batch, channel, row * window.stride[0] * rows, column, element),
    )
    sums: Array = np.matmul(matrices, seen)
    return sums.reshape(*x.shape[:2], height, width, x.shape[4])


def _make_bands(depthwise: Depthwise, image: Pair) -> Array:
    window, channels = depthwise.window, depthwise.taps.shape[2]
    rows, width = _rows_at_a_time(window, image), window.output_size(image)[1]
    length, columns = _band_length(window, image, rows), image[1] + window.left + window.right
    matrices = np.zeros((rows, width, length // columns, columns, channels), _FLOAT32)
    for r in range(rows):
        top = r * window.stride[0]
        for column in range(width):
            left = column * window.stride[1]
            right = left + window.extent[1]
            matrices[r, column, top : top + window.kernel[0], left : right : window.dilation[1]] = depthwise.taps
    return np.ascontiguousarray(np.moveaxis(matrices, -1, 0)).reshape(channels, 1, rows * width, length)


def _has_bands(depthwise: Depthwise, image: Pair) -> bool:
    window = depthwise.window
    if depthwise.multiplier != 1 or window.dilation[0] != 1:
        return False
    rows = _rows_at_a_time(window, image)
    elements = _band_length(window, image, rows) * rows * window.output_size(image)[1] * depthwise.taps.shape[2]
    return bool(elements * _FLOAT32.itemsize <= BAND_BYTES)


def _band_length(window: Window, image: Pair, rows: int) -> int:
    """Return the pixels of the padded image that some rows of outputs read."""
    return ((rows - 1) * window.stride[0] + window.kernel[0]) * (image[1] + window.left + window.right)


@lru_cache
def _rows_at_a_time(window: Window, image: Pair) -> int:
    """Return the divisor of the output's rows that costs least in products and calls of the BLAS (layout.py)."""
    height, width = window.output_size(image)

    def cost(rows: int) -> float:
        return _band_length(window, image, rows) * COSTS.band_product + COSTS.band_call / (rows * width)

    return min((r for r in range(1, min(height, 64) + 1) if height % r == 0), key=cost)
