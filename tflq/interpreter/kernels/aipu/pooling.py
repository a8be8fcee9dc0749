"""Pooling: AVG by a multiplier of 8 bits a position, MAX of raw codes; both pass the input's type (docs/aipu.md, 5)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tflq.errors import UnsupportedError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.accumulate import Window, window_counts, window_maxima, window_sums
from tflq.interpreter.kernels.aipu.multiplier import Multiplier, OutputCodes, codes_of, find_multipliers
from tflq.interpreter.kernels.aipu.scales import magnitude_of, offset_of, scale_of
from tflq.interpreter.kernels.aipu.windows import window_of
from tflq.interpreter.numerics.fixed_point import INT32_MAX, INT32_MIN, Integers

MULTIPLIER_BITS = 8
AVERAGE, MAXIMUM = "AVG", "MAX"


@dataclass(frozen=True, eq=False)
class PoolParams:
    """The integers of one pool.

    Attributes:
        window: kernel, stride, padding.
        counts: taps inside the image, int64[OH, OW, 1].
        rescale: M and N of each position, [OH, OW, 1]; None for the maximum.
        codes: how input and output are stored, zp that of the input.
        magnitude: largest |code| of the input.
    """

    window: Window
    counts: Integers
    rescale: Multiplier | None
    codes: OutputCodes
    magnitude: int


def lower(node: Node, operands: Operands) -> PoolParams:
    """Decide the integers of Pooling: r = (s_y / s_x) / area.

    The area is the kernel's with count_include_pad, else the taps inside the image at each position.

    Raises:
        UnsupportedError: another method than AVG or MAX.
    """
    x, output = operands.input(0), operands.output()
    window = window_of(node, x, output)
    counts = window_counts(window, (x.shape[1], x.shape[2]))[:, :, None]
    method = node.attributes.text("method")
    if method not in (AVERAGE, MAXIMUM):
        raise UnsupportedError(f"method={method}; allowed is {AVERAGE}, {MAXIMUM}")
    rescale = None
    if method == AVERAGE:
        is_full = node.attributes.boolean("count_include_pad", False)
        area = np.full(counts.shape, window.taps) if is_full else np.maximum(counts, 1)
        ratio = scale_of(output) / scale_of(x)
        rescale = find_multipliers((ratio / area.astype(np.float32)).astype(np.float32), MULTIPLIER_BITS)
    codes = replace(codes_of(output), offset=offset_of(x), dtype=x.dtype.storage)
    return PoolParams(window, counts, rescale, codes, magnitude_of(x))


def run(params: PoolParams, x: Array) -> tuple[Array, ...]:
    """Run Pooling: codes [S, N, H, W, C] -> codes [S, N, OH, OW, C]."""
    if params.rescale is None:
        return (window_maxima(params.window, x, params.codes.minimum),)
    sums = window_sums(params.window, x, params.magnitude).astype(np.int64)
    total = np.clip(sums + params.codes.offset * params.counts, INT32_MIN, INT32_MAX)
    return (params.codes.requantise(total, params.rescale),)
