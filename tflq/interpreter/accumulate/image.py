"""Images made ready for a window: cast, padded, and seen as overlapping patches without a copy."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import as_strided

from tflq.graph import Array
from tflq.interpreter.accumulate.window import Pair, Window


def padded(x: Array, window: Window, pad_value: int | float, dtype: np.dtype[np.generic]) -> Array:
    """Cast an image and put the padding around it, in one pass.

    Args:
        x: [B, H, W, C].
        window: whose padding to add.
        pad_value: what padded taps hold.
        dtype: of the result.

    Returns:
        [B, top + H + bottom, left + W + right, C], contiguous.
    """
    top, bottom, left, right = window.padding
    if not any(window.padding):
        return np.ascontiguousarray(x, dtype)
    batch, height, width, channels = x.shape
    image = np.empty((batch, top + height + bottom, left + width + right, channels), dtype)
    image[:, :top] = pad_value
    image[:, top + height :] = pad_value
    image[:, top : top + height, :left] = pad_value
    image[:, top : top + height, left + width :] = pad_value
    image[:, top : top + height, left : left + width] = x
    return image


def patches(image: Array, window: Window, output: Pair) -> Array:
    """See a padded image as patches.

    Args:
        image: [B, Hp, Wp, C], contiguous.
        window: kernel, stride and dilation count; the padding is in the image.
        output: (OH, OW).

    Returns:
        [B, OH, OW, KH, KW, C], a read-only view.
    """
    batch, row, column, channel = image.strides
    return as_strided(
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
        writeable=False,
    )
