"""Pooling: AVG by a multiplier of 8 bits a position, MAX of raw codes; both pass the input's type (docs/aipu.md, 5)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import UnsupportedError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.accumulate import Window, window_counts, window_maxima, window_sums
from tflq.interpreter.kernels.aipu.multiplier import Multiplier, find_multipliers
from tflq.interpreter.kernels.aipu.scales import code_limits, magnitude_of, offset_of, scale_of
from tflq.interpreter.kernels.aipu.windows import window_of
from tflq.interpreter.kernels.aipu.written import NOTHING, Written
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
        offset: zp of input and output.
        minimum: smallest code.
        maximum: largest code.
        magnitude: largest |code| of the input.
        written: for the IR: nothing, M and N follow from the area.
    """

    window: Window
    counts: Integers
    rescale: Multiplier | None
    offset: int
    minimum: int
    maximum: int
    magnitude: int
    written: Written = NOTHING


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
    low, high = code_limits(output)
    return PoolParams(window, counts, rescale, offset_of(x), low, high, magnitude_of(x))


def run(params: PoolParams, x: Array) -> tuple[Array, ...]:
    """Run Pooling: codes [S, N, H, W, C] -> codes [S, N, OH, OW, C]."""
    if params.rescale is None:
        return (window_maxima(params.window, x, params.minimum),)
    sums = window_sums(params.window, x, params.magnitude).astype(np.int64)
    total = np.clip(sums + params.offset * params.counts, INT32_MIN, INT32_MAX)
    codes = np.clip(params.rescale.apply(total) - params.offset, params.minimum, params.maximum)
    return (codes.astype(x.dtype),)
