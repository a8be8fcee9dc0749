"""Pooling: AVG by a multiplier of 8 bits a position, MAX of raw quantized values; both pass the input's type.

Source: docs/aipu.md, 5.

Source: docs/aipu.md, 5.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tflq.arrays import Integers
from tflq.graph import Array, Node, Operands, Tensor
from tflq.interpreter.accumulate import Window, window_counts
from tflq.interpreter.kernels.aipu.multiplier import Multiplier, OutputCodes, codes_of, find_multipliers
from tflq.interpreter.kernels.aipu.scales import magnitude_of, offset_of, scale_of
from tflq.interpreter.layers.pooling import AveragePool, MaxPool, run_average_pool, run_max_pool
from tflq.interpreter.numerics.fixed_point import INT32_MAX, INT32_MIN
from tflq.interpreter.operands.checks import require_choice

MULTIPLIER_BITS = 8
AVERAGE, MAXIMUM = "AVG", "MAX"


def window_of(node: Node, x: Tensor, output: Tensor) -> Window:
    """Return the window of a layer.

    That of GlobalPool is the whole image with its padding. The padding below and to the right is what the output's size
    needs: ceil_mode may need more than is stated.

    Args:
        node: with the keys.
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
        return self.codes.requantise(total, self.rescale)


def lower(node: Node, operands: Operands) -> AveragePool | MaxPool:
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


def run(params: AveragePool | MaxPool, x: Array) -> tuple[Array, ...]:
    """Run Pooling: quantised values [S, N, H, W, C] -> [S, N, OH, OW, C]."""
    return run_max_pool(params, x) if isinstance(params, MaxPool) else run_average_pool(params, x)
