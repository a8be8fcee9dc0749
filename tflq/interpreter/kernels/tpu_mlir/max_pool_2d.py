"""MAX_POOL_2D: the largest raw code inside the image; input and output share one type (docs/tpu_mlir.md, 3)."""

from __future__ import annotations

from dataclasses import dataclass

from tflq.graph import Array, Node, Operands
from tflq.interpreter.accumulate import Window, window_maxima
from tflq.interpreter.operands.windows import pool_window


@dataclass(frozen=True)
class MaxPool:
    """The numbers of one pool.

    Attributes:
        window: kernel, stride, padding.
        lowest: smallest code, which stands outside the image.
    """

    window: Window
    lowest: int


def lower(node: Node, operands: Operands) -> MaxPool:
    """Decide the window; raises as `pool_window`."""
    window, _ = pool_window(node, operands)
    return MaxPool(window, operands.input(0).dtype.minimum)


def run(params: MaxPool, x: Array) -> tuple[Array, ...]:
    """Run MAX_POOL_2D: codes [S, N, H, W, C] -> codes [S, N, OH, OW, C]."""
    return (window_maxima(params.window, x, params.lowest),)
