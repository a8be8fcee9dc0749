"""Exact accumulators of depthwise convolutions.

Columns are dealt out by their remainder modulo the horizontal stride: column q * stride + r is stored at [r, q]. Then
the outputs of a row read one contiguous run of columns * channels for each tap, whatever the stride, and one sum of
products over the taps of one remainder runs along the whole row.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import gcd
from typing import cast

import numpy as np
from numpy.typing import NDArray

from tflq.errors import GraphError
from tflq.graph import Array
from tflq.interpreter.accumulate.patches import deal_columns, strided_view
from tflq.interpreter.accumulate.products import exact_dtype, worst_magnitude
from tflq.interpreter.accumulate.taps import Number, WindowTaps
from tflq.interpreter.operands.sliding_windows import Window
from tflq.interpreter.recording.primitive import Ids, primitive

IMAGE_BYTES = 1 << 22
"""Bytes of padded images at a time: bounds memory; calls cost more than caches miss here."""

_Single = NDArray[np.float32]
"""Stands for whichever type the arrays have: the stubs of einsum want one by name."""


@dataclass(frozen=True, eq=False)
class Depthwise:
    """Weights packed for `accumulate_depthwise`.

    Attributes:
        window: kernel, stride, dilation, padding.
        taps: [KH, KW, C * multiplier] in the accumulator's type.
        multiplier: output channels that read one input channel: output o reads input o // multiplier.
        output_width: Output width of the images; other widths are slower.
    """

    window: Window
    taps: Array
    multiplier: int
    output_width: int = 1

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """The accumulator's type: float32, float64 or int64."""
        return self.taps.dtype

    def rows(self, width: int) -> tuple[Array, ...]:
        """Return the taps of a whole row of outputs: for each remainder kx [KH, KW / period, width * C * multiplier].

        Taps kx, kx + period, ... read columns of one remainder; period = stride / gcd(stride, dilation).
        """
        return self._rows if width == self.output_width else self._repeated(width)

    @cached_property
    def _rows(self) -> tuple[Array, ...]:
        return self._repeated(self.output_width)

    def _repeated(self, width: int) -> tuple[Array, ...]:
        stride, dilation = self.window.stride[1], self.window.dilation[1]
        period = stride // gcd(stride, dilation)
        starts = range(min(period, self.window.kernel[1]))
        return tuple(np.tile(self.taps[:, kx::period], (1, 1, width)) for kx in starts)


def prepare_depthwise(
    weights: Array, window: Window, multiplier: int, input_magnitude: int, output_width: int = 1
) -> Depthwise:
    """Make weights ready.

    Args:
        weights: integers [KH, KW, C * multiplier].
        window: Window with a kernel of (KH, KW).
        multiplier: output channels for each input channel.
        input_magnitude: largest |x| among stored quantized values, the padding value included.
        output_width: Output width of the images, if it is known.

    Raises:
        GraphError: the multiplier does not divide the channels, or the kernel sizes differ.
    """
    if multiplier < 1 or weights.shape[2] % multiplier or weights.shape[:2] != window.kernel:
        raise GraphError(f"weights {weights.shape} do not fit multiplier {multiplier} and a kernel of {window.kernel}")
    dtype = exact_dtype(worst_magnitude(np.moveaxis(weights, -1, 0), input_magnitude))
    return Depthwise(window, np.ascontiguousarray(weights, dtype), multiplier, output_width)


def of_depthwise(prepared: Depthwise, x: Ids, pad_value: Number) -> WindowTaps:
    """Taps of `accumulate_depthwise`."""

    def weights(o: int) -> tuple[Array, slice]:
        channel = o // prepared.multiplier
        return prepared.taps[:, :, o, None], slice(channel, channel + 1)

    return WindowTaps(prepared.window, x, pad_value, weights)


@primitive("sum of products", "over the taps", of_depthwise)
def accumulate_depthwise(prepared: Depthwise, x: Array, pad_value: int) -> Array:
    """acc[..., c * multiplier + m] = sum over taps of x[..., c] * w[ky, kx, c * multiplier + m], exactly.

    Args:
        prepared: weights and window.
        x: integers [S, N, H, W, C], stored quantized values (no zero point is taken off).
        pad_value: the code outside the image, usually the zero point.

    Returns:
        float32, float64 or int64 [S, N, OH, OW, C * multiplier] of exact integers.

    Raises:
        GraphError: x has other channels than the weights.
    """
    channels = prepared.taps.shape[2]
    if x.shape[-1] * prepared.multiplier != channels:
        raise GraphError(f"the input has {x.shape[-1]} channels, the weights {channels} for {prepared.multiplier} each")
    output = prepared.window.output_size((x.shape[2], x.shape[3]))
    images = x.reshape(-1, *x.shape[2:])
    if prepared.multiplier > 1:
        images = np.repeat(images, prepared.multiplier, axis=-1)
    result = np.empty((images.shape[0], output[0], output[1] * channels), prepared.dtype)
    step = max(1, IMAGE_BYTES // max(1, images[:1].size * prepared.dtype.itemsize))
    for start in range(0, images.shape[0], step):
        dealt = deal_columns(images[start : start + step], prepared.window, output, pad_value, prepared.dtype)
        _sum_taps(prepared, dealt, output[1], result[start : start + step])
    return result.reshape(*x.shape[:2], *output, channels)


def _sum_taps(prepared: Depthwise, image: Array, width: int, result: Array) -> None:
    """Sum the products of all taps into result [B, OH, OW * C]; taps of one remainder in one call."""
    window = prepared.window
    stride, dilation = window.stride[1], window.dilation[1]
    batch, row, remainder, column, element = image.strides
    step = column * (dilation // gcd(stride, dilation))
    for kx, weights in enumerate(prepared.rows(width)):
        seen = strided_view(
            image,
            (window.kernel[0], weights.shape[1], *result.shape),
            (row * window.dilation[0], step, batch, row * window.stride[0], element),
            kx * dilation % stride * remainder + kx * dilation // stride * column,
        )
        if kx == 0:
            _sum_products(seen, weights, result)
        else:
            partial = np.empty_like(result)
            _sum_products(seen, weights, partial)
            np.add(result, partial, out=result)


def _sum_products(seen: Array, weights: Array, out: Array) -> None:
    """out[b, h, j] = sum over y, x of seen[y, x, b, h, j] * weights[y, x, j]."""
    np.einsum("yxbhj,yxj->bhj", cast(_Single, seen), cast(_Single, weights), out=cast(_Single, out))
