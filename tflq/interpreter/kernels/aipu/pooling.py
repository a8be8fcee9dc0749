"""Pools of Compass, and positions of maxima (docs/rules/aipu/operators.md).

Padding never wins in MaxPoolingWithArgMax. Of two values for one place of UpsampleByIndex the later one wins.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tflq.arrays import Integers
from tflq.graph import Array, Node, Operands, Tensor
from tflq.interpreter.accumulate import window_counts
from tflq.interpreter.kernels.aipu.boxes import together
from tflq.interpreter.kernels.aipu.multiplier import Multiplier, OutputCodes, codes_of, find_multipliers
from tflq.interpreter.kernels.aipu.scales import magnitude_of, offset_of, scale_of
from tflq.interpreter.layers.pooling import AveragePool, MaxPool, run_average_pool, run_max_pool
from tflq.interpreter.numerics.fixed_point import INT32_MAX, INT32_MIN
from tflq.interpreter.operands.checks import require_choice
from tflq.interpreter.operands.sliding_windows import Window
from tflq.interpreter.registry import Kernel

MULTIPLIER_BITS = 8
AVERAGE, MAXIMUM = "AVG", "MAX"


def window_of(node: Node, x: Tensor, output: Tensor) -> Window:
    """Return the window of a layer.

    That of GlobalPool is the whole image with its padding. The padding below and to the right follows from the output's
    size: ceil_mode may need more than is stated.

    Args:
        node: Layer with the attributes.
        x: [N, H, W, C].
        output: [N, OH, OW, O].

    Raises:
        GraphError: a key is missing, or sizes below 1.
    """
    value = node.attributes.integer
    kernel = (value("kernel_y"), value("kernel_x"))
    if node.operator == "global_pool":
        kernel = (
            x.shape[1] + value("pad_top") + value("pad_bottom"),
            x.shape[2] + value("pad_left") + value("pad_right"),
        )
    stride = (value("stride_y"), value("stride_x"))
    dilation = (value("dilation_y", 1), value("dilation_x", 1))
    top, left = value("pad_top"), value("pad_left")
    extents = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    bottom, right = (
        max(0, (o - 1) * s + e - i - before)
        for o, s, e, i, before in zip(output.shape[1:3], stride, extents, x.shape[1:3], (top, left), strict=True)
    )
    return Window(kernel, stride, dilation, top, bottom, left, right)


@dataclass(frozen=True, eq=False)
class AreaAverage:
    """The rule of an average: M and N of each position, [OH, OW, 1], and how input and output are stored."""

    rescale: Multiplier
    codes: OutputCodes

    def apply(self, sums: Array, counts: Integers | int) -> Array:
        """Return clamp(RNE(clamp32(sum + zp * count) * M * 2^-N) - zp)."""
        total = np.clip(sums.astype(np.int64) + self.codes.offset * counts, INT32_MIN, INT32_MAX)
        return self.codes.requantize(total, self.rescale)


def lower_pooling(node: Node, operands: Operands) -> AveragePool | MaxPool:
    """Decide the params of Pooling: r = (s_y / s_x) / area.

    The area is the kernel's with count_include_pad, else the taps inside the image at each position.

    Raises:
        UnsupportedError: another method than AVG or MAX.
    """
    x, output = operands.input(0), operands.output()
    window, method = window_of(node, x, output), require_choice(node, "method", (AVERAGE, MAXIMUM))
    codes = replace(codes_of(output), offset=offset_of(x), dtype=x.dtype.storage)
    if method == MAXIMUM:
        return MaxPool(window, codes.minimum)
    counts = window_counts(window, (x.shape[1], x.shape[2]))[:, :, None]
    is_full = node.attributes.boolean("count_include_pad", False)
    area = np.full(counts.shape, window.taps) if is_full else np.maximum(counts, 1)
    ratio = scale_of(output) / scale_of(x)
    rescale = find_multipliers((ratio / area.astype(np.float32)).astype(np.float32), MULTIPLIER_BITS)
    return AveragePool(window, counts, AreaAverage(rescale, codes), magnitude_of(x))


def run_pooling(params: AveragePool | MaxPool, x: Array) -> tuple[Array, ...]:
    """Run Pooling: quantized values [S, N, H, W, C] -> [S, N, OH, OW, C]."""
    return run_max_pool(params, x) if isinstance(params, MaxPool) else run_average_pool(params, x)


FLATTENED = ("HW", "HWC", "NHWC", "NCHW")
PADDING = -(1 << 31)


@dataclass(frozen=True, eq=False)
class ArgPoolParams:
    """The params of one layer.

    Attributes:
        window: kernel, stride, dilation; padding as the output's size needs it.
        reached: rows and columns of the output that a window fills; the rest contains -zp and index 0.
        flatten: Name of the axes that an index counts.
        by_columns: whether places of one plane are counted column by column.
        offset: zp of input and output.
        shape: Shape of the output.
    """

    window: Window
    reached: tuple[int, int]
    flatten: str
    by_columns: bool
    offset: int
    shape: tuple[int, ...]


def lower_max_pooling_with_arg_max(node: Node, operands: Operands) -> ArgPoolParams:
    """Take the window. Input [N, H, W, C]; outputs values [N, OH, OW, C] of the input's type, indices int32.

    Raises:
        UnsupportedError: flatten_dim is none of HW, HWC, NHWC, NCHW.
    """
    flatten = require_choice(node, "flatten_dim", FLATTENED, "HWC")
    x, output = operands.input(0), operands.output()
    by_columns = bool(node.attributes.integer("storage_order", 0))
    window = window_of(node, x, output)
    reached = _count_reached(node, window, (x.shape[1], x.shape[2]))
    return ArgPoolParams(window, reached, flatten, by_columns, offset_of(x), output.shape)


def run_max_pooling_with_arg_max(params: ArgPoolParams, x: Array) -> tuple[Array, ...]:
    """Run the layer: quantized [S, N, H, W, C] -> quantized values and indices [S, N, OH, OW, C].

    The first maximum on ties.
    """
    window, (rows, columns) = params.window, params.reached
    pads = ((0, 0), (0, 0), (window.top, window.bottom), (window.left, window.right), (0, 0))
    padded = np.pad(x.astype(np.int64), pads, constant_values=PADDING)
    lead, channels = x.shape[:2], x.shape[4]
    best = np.full((*lead, rows, columns, channels), PADDING, np.int64)
    places = np.zeros((2, *best.shape), np.int64)
    row, column = np.arange(rows)[:, None, None], np.arange(columns)[:, None]
    for ky, kx in np.ndindex(*window.kernel):
        tops, lefts = (
            k * d + s * np.arange(n)
            for k, d, s, n in zip((ky, kx), window.dilation, window.stride, (rows, columns), strict=True)
        )
        values = padded[:, :, tops][:, :, :, lefts]
        better = values > best
        best = np.where(better, values, best)
        y, z = tops[row] - window.top, lefts[column] - window.left
        places = np.where(better, np.stack([np.broadcast_to(y, best.shape), np.broadcast_to(z, best.shape)]), places)
    maxima = np.where(best == PADDING, 0, best)
    indices = np.where(best == PADDING, 0, _indices(params, places, x.shape[1:]))
    values_of = np.full((len(x), *params.shape), -params.offset, x.dtype)
    indices_of = np.zeros((len(x), *params.shape), np.int32)
    values_of[:, :, :rows, :columns], indices_of[:, :, :rows, :columns] = maxima, indices
    return values_of, indices_of


def _count_reached(node: Node, window: Window, size: tuple[int, int]) -> tuple[int, int]:
    """Return the rows and columns of windows that start on the stated padding or the image."""
    sides = (("pad_top", "pad_bottom"), ("pad_left", "pad_right"))
    ceils, counts = node.attributes.boolean("ceil_mode", False), []
    for axis, names in enumerate(sides):
        length = size[axis] + sum(node.attributes.integer(name) for name in names)
        free = length - (window.kernel[axis] - 1) * window.dilation[axis] - 1
        stride = window.stride[axis]
        count = (-(-free // stride) if ceils else free // stride) + 1
        counts.append(count - 1 if (count - 1) * stride >= length else count)
    return counts[0], counts[1]


def _indices(params: ArgPoolParams, places: Integers, shape: tuple[int, ...]) -> Integers:
    """Return the indices of places; shape is [N, H, W, C]."""
    (y, x), (_, height, width, channels) = places, shape
    plane = x * height + y if params.by_columns else y * width + x
    channel = np.arange(channels)
    image = np.arange(shape[0])[:, None, None, None]
    counted: dict[str, Integers] = {
        "HW": plane,
        "HWC": plane * channels + channel,
        "NHWC": image * (height * width * channels) + plane * channels + channel,
        "NCHW": image * (height * width * channels) + channel * (height * width) + plane,
    }
    return counted[params.flatten]


_CHANNELS_FIRST = ("HW", "NCHW")


@dataclass(frozen=True, eq=False)
class UpsampleParams:
    """The params of one layer: which axes an index counts, zp, the output's shape [N, H, W, C]."""

    flatten: str
    offset: int
    shape: tuple[int, ...]


def lower_upsample_by_index(node: Node, operands: Operands) -> UpsampleParams:
    """Take the axes. Inputs: values and indices [N, IH, IW, C]; indices count in the output's shape.

    Raises:
        UnsupportedError: flatten_dim is none of HW, HWC, NHWC, NCHW.
    """
    flatten = require_choice(node, "flatten_dim", FLATTENED, "HWC")
    return UpsampleParams(flatten, offset_of(operands.input(0)), operands.output().shape)


def run_upsample_by_index(params: UpsampleParams, values: Array, indices: Array) -> tuple[Array, ...]:
    """Run the layer: quantized [S, N, IH, IW, C], [S, N, IH, IW, C] -> quantized [S, N, H, W, C].

    Indices at or after the end of the output are left out.
    """
    values, indices = together(values, indices)
    images, height, width, channels = params.shape
    places: Integers = indices.astype(np.int64)
    if params.flatten in ("HW", "HWC"):
        places = places + np.arange(images)[:, None, None, None] * (height * width * channels)
    if params.flatten == "HW":
        places = places + np.arange(channels) * (height * width)
    first = params.flatten in _CHANNELS_FIRST
    if first:
        values, places = values.transpose(0, 1, 4, 2, 3), places.transpose(0, 1, 4, 2, 3)
    result = np.full((len(values), images * height * width * channels), -params.offset, values.dtype)
    for s, flat in enumerate(result):
        where = places[s].reshape(-1)
        inside = where < flat.size
        flat[where[inside]] = values[s].reshape(-1)[inside]
    if first:
        return (result.reshape(-1, images, channels, height, width).transpose(0, 1, 3, 4, 2),)
    return (result.reshape(-1, *params.shape),)


KERNELS = {
    "global_pool": Kernel(lower_pooling, run_pooling, "as POOLING, the window is the image",
        "docs/rules/aipu/operators.md"),
    "pooling": Kernel(lower_pooling, run_pooling,
        "AVG by a multiplier of 8 bits a position, MAX of raw quantized values; both pass the input's type",
        "docs/rules/aipu/operators.md"),
    "max_pooling_with_arg_max": Kernel(lower_max_pooling_with_arg_max, run_max_pooling_with_arg_max,
        "the largest value of each window and where it stands",
        "Compass Optimizer, ops/maxpooling_withargmax.py; docs/rules/aipu/operators.md"),
    "upsample_by_index": Kernel(lower_upsample_by_index, run_upsample_by_index,
        "values put where indices say, -zp elsewhere", "Compass Optimizer, ops/upsamplebyindex.py; "
            "docs/rules/aipu/operators.md"),
}  # fmt: skip
