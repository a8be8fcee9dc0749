"""Exact accumulators of dense and grouped convolutions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import GraphError
from tflq.graph import Array
from tflq.interpreter.accumulate.bounds import exact_dtype, worst_magnitude
from tflq.interpreter.accumulate.depthwise import Depthwise, accumulate_depthwise, prepare_depthwise
from tflq.interpreter.accumulate.image import padded, patches
from tflq.interpreter.accumulate.window import Pair, Window

PATCH_BYTES = 1 << 20
"""Bytes of copied patches at a time: what stays in the second-level cache beside weights and accumulators."""


@dataclass(frozen=True, eq=False)
class Convolution:
    """Weights made ready for `accumulate_convolution`.

    Attributes:
        window: kernel, stride, dilation, padding.
        columns: one [KH, KW * C/groups, O/groups] for each group, in the accumulator's type.
        depthwise: used instead where each group has one input channel.
        channels: (input channels, output channels).
    """

    window: Window
    columns: tuple[Array, ...]
    depthwise: Depthwise | None
    channels: tuple[int, int]

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """The accumulator's type: float32, float64 or int64."""
        return self.depthwise.dtype if self.depthwise else self.columns[0].dtype


def prepare_convolution(weights: Array, window: Window, groups: int, input_magnitude: int) -> Convolution:
    """Make weights ready.

    Args:
        weights: integers [O, KH, KW, C/groups]; output channel o belongs to group o // (O/groups).
        window: its kernel is (KH, KW).
        groups: number of groups.
        input_magnitude: largest |x| among stored codes, the padding value included.

    Raises:
        GraphError: the groups do not divide the output channels, or the kernel sizes differ.
    """
    outputs, height, width, depth = weights.shape
    if groups < 1 or outputs % groups or (height, width) != window.kernel:
        raise GraphError(f"weights {weights.shape} do not fit {groups} groups and a kernel of {window.kernel}")
    channels = (depth * groups, outputs)
    if depth == 1 and groups > 1:
        taps = np.moveaxis(weights[..., 0], 0, -1)
        return Convolution(window, (), prepare_depthwise(taps, window, outputs // groups, input_magnitude), channels)
    dtype = exact_dtype(worst_magnitude(weights, input_magnitude))
    columns = np.moveaxis(weights, 0, -1).reshape(height, width * depth, groups, outputs // groups)
    split = tuple(np.ascontiguousarray(columns[:, :, g], dtype) for g in range(groups))
    return Convolution(window, split, None, channels)


def accumulate_convolution(prepared: Convolution, x: Array, pad_value: int) -> Array:
    """acc[..., o] = sum over taps and the group's channels of x * w, exactly; padded taps hold `pad_value`.

    Args:
        prepared: weights and window.
        x: integers [S, N, H, W, C], stored codes (no zero point is taken off).
        pad_value: the code outside the image, usually the zero point.

    Returns:
        float32, float64 or int64 [S, N, OH, OW, O] whose values are the exact integers.

    Raises:
        GraphError: x has other channels than the weights.
    """
    if x.shape[-1] != prepared.channels[0]:
        raise GraphError(f"the input has {x.shape[-1]} channels, the weights need {prepared.channels[0]}")
    if prepared.depthwise:
        return accumulate_depthwise(prepared.depthwise, x, pad_value)
    images = x.reshape(-1, *x.shape[2:])
    output = prepared.window.output_size((x.shape[2], x.shape[3]))
    result = np.empty((images.shape[0], *output, prepared.channels[1]), prepared.dtype)
    step = _images_at_a_time(prepared, output)
    for start in range(0, images.shape[0], step):
        _accumulate_images(prepared, images[start : start + step], pad_value, result[start : start + step])
    return result.reshape(*x.shape[:2], *output, prepared.channels[1])


def _images_at_a_time(prepared: Convolution, output: Pair) -> int:
    row = prepared.window.taps * prepared.channels[0] * prepared.dtype.itemsize
    return max(1, PATCH_BYTES // max(1, output[0] * output[1] * row))


def _accumulate_images(prepared: Convolution, x: Array, pad_value: int, result: Array) -> None:
    groups = len(prepared.columns)
    if groups == 1:
        _accumulate_group(prepared.window, prepared.columns[0], x, pad_value, result)
        return
    for g, columns in enumerate(prepared.columns):
        inputs, outputs = (c // groups for c in prepared.channels)
        part = np.empty((*result.shape[:3], outputs), result.dtype)
        _accumulate_group(prepared.window, columns, x[..., g * inputs : (g + 1) * inputs], pad_value, part)
        result[..., g * outputs : (g + 1) * outputs] = part


def _accumulate_group(window: Window, columns: Array, x: Array, pad_value: int, result: Array) -> None:
    flat = columns.reshape(-1, columns.shape[-1])
    if window.is_pointwise:
        image = np.ascontiguousarray(x[:, :: window.stride[0], :: window.stride[1]], columns.dtype)
        np.matmul(image.reshape(-1, flat.shape[0]), flat, out=result.reshape(-1, flat.shape[1]))
        return
    image = padded(x, window, pad_value, columns.dtype)
    rows = patches(image, window, (result.shape[1], result.shape[2])).reshape(-1, flat.shape[0])
    np.matmul(rows, flat, out=result.reshape(-1, flat.shape[1]))
