"""MAX_POOL_2D in GAP9's arithmetic: padding holds the zero point and takes part (docs/gap9.md, 10)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.graph import Array, Node, Operands
from tflq.interpreter.accumulate import Window, window_counts, window_maxima
from tflq.interpreter.operands.windows import window_of_node


@dataclass(frozen=True, eq=False)
class MaxPoolParams:
    """The integers of one pool.

    Attributes:
        window: kernel, stride, padding.
        floor: least code of each output [OH, OW, 1]: the zero point where the window leaves the image, else the
            smallest code; None without padding.
        minimum: smallest code.
    """

    window: Window
    floor: Array | None
    minimum: int


def lower(node: Node, operands: Operands) -> MaxPoolParams:
    """Decide the integers of MAX_POOL_2D; input and output share scale and zero point."""
    x = operands.input(0)
    window = window_of_node(node, x.shape)
    partial = window_counts(window, (x.shape[1], x.shape[2])) < window.taps
    least = x.affine.minimum_code
    if not partial.any():
        return MaxPoolParams(window, None, least)
    floor = np.where(partial, int(x.affine.zero_point[0]), least)[:, :, None].astype(x.dtype.storage)
    return MaxPoolParams(window, floor, least)


def run(params: MaxPoolParams, x: Array) -> tuple[Array, ...]:
    """Run MAX_POOL_2D: codes [S, N, H, W, C] -> [S, N, OH, OW, C]."""
    y = window_maxima(params.window, x, params.minimum)
    return (y if params.floor is None else np.maximum(y, params.floor),)
