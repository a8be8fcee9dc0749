"""Padded images, and the patches of a sliding window as views, without a copy."""

from __future__ import annotations

import numpy as np

from tflq.graph import Array
from tflq.interpreter.operands.sliding_windows import Pair, Window
from tflq.interpreter.recording.primitive import moves


def padded(x: Array, window: Window, pad_value: int | float, dtype: np.dtype[np.generic]) -> Array:
    """Cast an image and put the padding around it, in one pass.

    Args:
        x: Image [B, H, W, C].
        window: Window with the padding to add.
        pad_value: Value of the padding.
        dtype: Type of the result.

    Returns:
        Padded image [B, top + H + bottom, left + W + right, C], contiguous.
    """
    if not any(window.padding):
        return np.ascontiguousarray(x, dtype)
    top, bottom, left, right = window.padding
    batch, height, width, channels = x.shape
    image = np.full((batch, top + height + bottom, left + width + right, channels), pad_value, dtype)
    image[:, top : top + height, left : left + width] = x
    return image


def deal_columns(x: Array, window: Window, output: Pair, pad_value: int, dtype: np.dtype[np.generic]) -> Array:
    """Return [B, Hp, stride, Wq, C] of an image [B, H, W, C]: padded, column q * stride + r at [r, q]; contiguous.

    A tap then reads one run of columns for a row of outputs, whatever the horizontal stride.
    """
    stride = window.stride[1]
    if stride == 1:
        return padded(x, window, pad_value, dtype)[:, :, None]
    batch, height, _, channels = x.shape
    rows = (output[0] - 1) * window.stride[0] + window.extent[0]
    columns = -(-((output[1] - 1) * stride + window.extent[1]) // stride)
    bottom = min(window.top + height, rows)
    image = np.full((batch, rows, stride, columns, channels), pad_value, dtype)
    for r in range(stride):
        first = -((window.left - r) // -stride)  # smallest q with q * stride + r >= left
        part = x[:, : bottom - window.top, first * stride + r - window.left :: stride][:, :, : columns - first]
        image[:, window.top : bottom, r, first : first + part.shape[2]] = part
    return image


@moves
def patches(image: Array, window: Window, output: Pair) -> Array:
    """See a padded image as patches.

    Args:
        image: Padded image [B, Hp, Wp, C], contiguous.
        window: Window with the kernel, stride and dilation; its padding is part of the image.
        output: Output size (OH, OW).

    Returns:
        Patches [B, OH, OW, KH, KW, C], a read-only view.
    """
    batch, row, column, channel = image.strides
    return strided_view(
        image,
        (image.shape[0], *output, *window.kernel, image.shape[3]),
        (
            batch,
            row * window.stride[0],
            column * window.stride[1],
            row * window.dilation[0],
            column * window.dilation[1],
            channel,
        ),
    )


def strided_view(array: Array, shape: tuple[int, ...], strides: tuple[int, ...], offset: int = 0) -> Array:
    """See a contiguous array with other strides: as numpy's as_strided, at a tenth of its cost, and within bounds.

    Args:
        array: Contiguous array.
        shape: Shape of the view.
        strides: Strides of the view, in bytes.
        offset: Offset of the first element of the view, in bytes.
    """
    view: Array = np.ndarray(shape, array.dtype, array, offset, strides)
    view.setflags(write=False)
    return view
