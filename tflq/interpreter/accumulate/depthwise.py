"""Exact accumulators of depthwise convolutions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from tflq.errors import GraphError
from tflq.graph import Array
from tflq.interpreter.accumulate.bounds import exact_dtype, worst_magnitude
from tflq.interpreter.accumulate.image import padded, patches
from tflq.interpreter.accumulate.window import Window


@dataclass(frozen=True, eq=False)
class Depthwise:
    """Weights made ready for `accumulate_depthwise`.

    Attributes:
        window: kernel, stride, dilation, padding.
        taps: [KH, KW, C * multiplier] in the accumulator's type.
        multiplier: output channels that read one input channel: output o reads input o // multiplier.
    """

    window: Window
    taps: Array
    multiplier: int

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """The accumulator's type: float32, float64 or int64."""
        return self.taps.dtype


def prepare_depthwise(weights: Array, window: Window, multiplier: int, input_magnitude: int) -> Depthwise:
    """Make weights ready.

    Args:
        weights: integers [KH, KW, C * multiplier].
        window: its kernel is (KH, KW).
        multiplier: output channels for each input channel.
        input_magnitude: largest |x| among stored codes, the padding value included.

    Raises:
        GraphError: the multiplier does not divide the channels, or the kernel sizes differ.
    """
    if multiplier < 1 or weights.shape[2] % multiplier or weights.shape[:2] != window.kernel:
        raise GraphError(f"weights {weights.shape} do not fit multiplier {multiplier} and a kernel of {window.kernel}")
    dtype = exact_dtype(worst_magnitude(np.moveaxis(weights, -1, 0), input_magnitude))
    return Depthwise(window, np.ascontiguousarray(weights, dtype), multiplier)


def accumulate_depthwise(prepared: Depthwise, x: Array, pad_value: int) -> Array:
    """acc[..., c * multiplier + m] = sum over taps of x[..., c] * w[ky, kx, c * multiplier + m], exactly.

    Args:
        prepared: weights and window.
        x: integers [S, N, H, W, C], stored codes (no zero point is taken off).
        pad_value: the code outside the image, usually the zero point.

    Returns:
        float32, float64 or int64 [S, N, OH, OW, C * multiplier] whose values are the exact integers.

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
    image = padded(images, prepared.window, pad_value, prepared.dtype)
    view = cast("NDArray[np.float32]", patches(image, prepared.window, output))
    result: Array = np.einsum("bhwyxc,yxc->bhwc", view, cast("NDArray[np.float32]", prepared.taps))
    return result.reshape(*x.shape[:2], *output, channels)
