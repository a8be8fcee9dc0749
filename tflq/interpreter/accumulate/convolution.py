"""Exact accumulators of dense and grouped convolutions: patches of the image, copied into rows, times weights.

Several neighboring outputs of a row can share one patch: it is a little wider, and contains the weights of each output
at their place between zeros. That costs products with zero and saves copies and narrow matrices; `_outputs_at_a_time`
weighs one against the other. It pays for images of few channels.

If there are more, and the kernel moves one row at a time, a row's patches are copied once, not once for each row of the
kernel that reads them, and the kernel's rows are multiplied one by one and added.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tflq.errors import GraphError
from tflq.graph import Array
from tflq.interpreter.accumulate.depthwise import Depthwise, accumulate_depthwise, of_depthwise, prepare_depthwise
from tflq.interpreter.accumulate.patches import padded, strided_view
from tflq.interpreter.accumulate.products import MatrixProduct, accumulate_product, exact_dtype, worst_magnitude
from tflq.interpreter.accumulate.taps import Number, WindowTaps
from tflq.interpreter.layout import COSTS
from tflq.interpreter.operands.sliding_windows import Pair, Window
from tflq.interpreter.recording.primitive import Ids, primitive

PATCH_BYTES = 1 << 21
"""Bytes of copied patches at a time: few calls, and the patches are still in a cache when they are multiplied."""


ROW_PATCH = 32
"""Elements of a row of a patch from which on its product with one row of the kernel is as fast as one of all rows."""


@dataclass(frozen=True, eq=False)
class Convolution:
    """Weights packed for `accumulate_convolution`.

    Attributes:
        window: kernel, stride, dilation, padding.
        columns: Matrices of the groups, [K, block * O/groups] each in the accumulator's type, K = KH * run * C/groups.
        block: neighboring outputs of a row that share one patch; divides the output's width.
        depthwise: used instead if each group has one input channel.
        channels: (input channels, output channels).
    """

    window: Window
    columns: tuple[Array, ...]
    block: int
    depthwise: Depthwise | None
    channels: tuple[int, int]

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """The accumulator's type: float32, float64 or int64."""
        return self.depthwise.dtype if self.depthwise else self.columns[0].dtype

    @cached_property
    def is_product(self) -> bool:
        """Whether it is a product of the pixels' channels with one matrix."""
        return self.window.is_pointwise and self.window.stride == (1, 1) and len(self.columns) == 1

    @cached_property
    def adds_rows(self) -> bool:
        """Whether the kernel's rows are multiplied one by one."""
        return _adds_rows(self.window, self.channels[0] // len(self.columns))

    @cached_property
    def rows(self) -> Array:
        """The weights of a single group as [O, KH * KW * C]."""
        outputs, (height, width) = self.channels[1], self.window.kernel
        wide = self.columns[0].reshape(height, -1, self.channels[0], self.block, outputs)
        return np.ascontiguousarray(wide[:, :width, :, 0].reshape(-1, outputs).T)

    @property
    def run(self) -> int:
        """Columns of the image that one patch spans, or taps if they are dilated."""
        return (self.block - 1) * self.window.stride[1] + self.window.kernel[1]


def prepare_convolution(
    weights: Array, window: Window, groups: int, input_magnitude: int, output_width: int = 1
) -> Convolution:
    """Make weights ready.

    Args:
        weights: integers [O, KH, KW, C/groups]; output channel o belongs to group o // (O/groups).
        window: Window with a kernel of (KH, KW).
        groups: number of groups.
        input_magnitude: largest |x| among stored quantized values, the padding value included.
        output_width: Output width of the images; 1 if it is not known, then each output gets its own patch.

    Raises:
        GraphError: the groups do not divide the output channels, or the kernel sizes differ.
    """
    outputs, height, width, depth = weights.shape
    if groups < 1 or outputs % groups or (height, width) != window.kernel:
        raise GraphError(f"weights {weights.shape} do not fit {groups} groups and a kernel of {window.kernel}")
    channels = (depth * groups, outputs)
    if depth == 1 and groups > 1:
        taps = np.moveaxis(weights[..., 0], 0, -1)
        depthwise = prepare_depthwise(taps, window, outputs // groups, input_magnitude, output_width)
        return Convolution(window, (), 1, depthwise, channels)
    dtype = exact_dtype(worst_magnitude(weights, input_magnitude))
    block = _outputs_at_a_time(window, depth, outputs // groups, output_width)
    columns = tuple(_columns(part, window, block, dtype) for part in np.split(weights, groups))
    return Convolution(window, columns, block, None, channels)


def of_convolution(prepared: Convolution, x: Ids, pad_value: Number) -> WindowTaps:
    """Taps of `accumulate_convolution`."""
    if prepared.depthwise is not None:
        return of_depthwise(prepared.depthwise, x, pad_value)
    groups, (inputs, outputs) = len(prepared.columns), prepared.channels
    depth, count = inputs // groups, outputs // groups
    height, width = prepared.window.kernel

    def weights(o: int) -> tuple[Array, slice]:
        group = o // count
        wide = prepared.columns[group].reshape(height, -1, depth, prepared.block, count)
        return wide[:, :width, :, 0, o % count], slice(group * depth, (group + 1) * depth)

    return WindowTaps(prepared.window, x, pad_value, weights)


@primitive("sum of products", "over the taps", of_convolution)
def accumulate_convolution(prepared: Convolution, x: Array, pad_value: int) -> Array:
    """acc[..., o] = sum over taps and the group's channels of x * w, exactly; padded taps contain `pad_value`.

    Args:
        prepared: weights and window.
        x: integers [S, N, H, W, C], stored quantized values (no zero point is taken off).
        pad_value: the code outside the image, usually the zero point.

    Returns:
        float32, float64 or int64 [S, N, OH, OW, O] of exact integers.

    Raises:
        GraphError: x has other channels, or another width, than the weights were prepared for.
    """
    if x.shape[-1] != prepared.channels[0]:
        raise GraphError(f"the input has {x.shape[-1]} channels, the weights need {prepared.channels[0]}")
    if prepared.depthwise:
        return accumulate_depthwise(prepared.depthwise, x, pad_value)
    if prepared.is_product and x.size * prepared.dtype.itemsize <= PATCH_BYTES:
        return accumulate_product(MatrixProduct(prepared.columns[0]), x)
    images = x.reshape(-1, *x.shape[2:])
    output = prepared.window.output_size((x.shape[2], x.shape[3]))
    if output[1] % prepared.block:
        raise GraphError(f"the output is {output[1]} wide, the weights were prepared for multiples of {prepared.block}")
    result = np.empty((images.shape[0], *output, prepared.channels[1]), prepared.dtype)
    step = _images_at_a_time(prepared, output)
    for start in range(0, images.shape[0], step):
        _accumulate_images(prepared, images[start : start + step], pad_value, result[start : start + step])
    return result.reshape(*x.shape[:2], *output, prepared.channels[1])


def _outputs_at_a_time(window: Window, depth: int, outputs: int, width: int) -> int:
    """Return the divisor of the width that costs least: products, more if the matrix is narrow, and copied runs."""
    if window.is_pointwise or window.dilation[1] > 1 or _adds_rows(window, depth):
        return 1

    def cost(m: int) -> float:
        run = ((m - 1) * window.stride[1] + window.kernel[1]) * depth
        products = window.kernel[0] * run * outputs
        copies = window.kernel[0] / m * (COSTS.copied_run + run * COSTS.copied_element)
        return float(products * COSTS.patch_product * (1 + COSTS.narrow / (m * outputs)) + copies)

    divisors = [m for m in range(1, min(width, 16) + 1) if width % m == 0]
    return min(divisors, key=cost)


def _adds_rows(window: Window, depth: int) -> bool:
    return window.kernel[0] > 1 and window.stride[0] == 1 and window.kernel[1] * depth >= ROW_PATCH


def _columns(weights: Array, window: Window, block: int, dtype: np.dtype[np.generic]) -> Array:
    """Return [KH * run * C, block * O]: output m's weights start at column m * stride of the patch, zeros around."""
    outputs, height, width, depth = weights.shape
    stride = window.stride[1]
    wide = np.zeros((height, (block - 1) * stride + width, depth, block, outputs), dtype)
    for m in range(block):
        wide[:, m * stride : m * stride + width, :, m] = np.moveaxis(weights, 0, -1)
    return wide.reshape(-1, block * outputs)


def _images_at_a_time(prepared: Convolution, output: Pair) -> int:
    row: int = prepared.columns[0].shape[0] * prepared.dtype.itemsize // prepared.block
    return max(1, PATCH_BYTES // max(1, output[0] * output[1] * row))


def _accumulate_images(prepared: Convolution, x: Array, pad_value: int, result: Array) -> None:
    groups = len(prepared.columns)
    if groups == 1:
        _accumulate_group(prepared, prepared.columns[0], x, pad_value, result)
        return
    inputs, outputs = (c // groups for c in prepared.channels)
    for g, columns in enumerate(prepared.columns):
        part = np.empty((*result.shape[:3], outputs), result.dtype)
        _accumulate_group(prepared, columns, x[..., g * inputs : (g + 1) * inputs], pad_value, part)
        result[..., g * outputs : (g + 1) * outputs] = part


def _accumulate_group(prepared: Convolution, columns: Array, x: Array, pad_value: int, result: Array) -> None:
    window = prepared.window
    if window.is_pointwise:
        image = np.ascontiguousarray(x[:, :: window.stride[0], :: window.stride[1]], columns.dtype)
        rows = image.reshape(-1, columns.shape[0])
    else:
        image = padded(x, window, pad_value, columns.dtype)
        if prepared.adds_rows:
            _add_rows(window, columns, image, result)
            return
        rows = _patches(prepared, image, (result.shape[1], result.shape[2])).reshape(-1, columns.shape[0])
    np.matmul(rows, columns, out=result.reshape(-1, columns.shape[1]))


def _add_rows(window: Window, columns: Array, image: Array, result: Array) -> None:
    """Sum over the kernel's rows: their patches [B, Hp, OW, KW * C] times [KW * C, O]."""
    count, height, width, outputs = result.shape
    batch, row, column, channel = image.strides
    seen = strided_view(
        image,
        (*image.shape[:2], width, window.kernel[1], image.shape[3]),
        (batch, row, column * window.stride[1], column * window.dilation[1], channel),
    )
    depth = window.kernel[1] * image.shape[3]
    patches = np.ascontiguousarray(seen).reshape(*image.shape[:2], width, depth)
    total = result.reshape(count, height * width, outputs)
    partial = np.empty_like(total)
    for ky, weights in enumerate(columns.reshape(-1, depth, outputs)):
        top = ky * window.dilation[0]
        rows = patches[:, top : top + height].reshape(count, height * width, depth)
        np.matmul(rows, weights, out=partial if ky else total)
        if ky:
            np.add(total, partial, out=total)


def _patches(prepared: Convolution, image: Array, output: Pair) -> Array:
    """See a padded image as [B, OH, OW / block, KH, run, C], without a copy."""
    window = prepared.window
    batch, row, column, channel = image.strides
    shape = (image.shape[0], output[0], output[1] // prepared.block, window.kernel[0], prepared.run, image.shape[3])
    strides = (
        batch,
        row * window.stride[0],
        column * window.stride[1] * prepared.block,
        row * window.dilation[0],
        column * window.dilation[1],
        channel,
    )
    return strided_view(image, shape, strides)
