"""MAX_POOL_2D on codes: the largest code; levels keep their order. Input and output share their range."""

from __future__ import annotations

from dataclasses import dataclass

from tflq.errors import UnsupportedError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.accumulate import Window, window_maxima, window_of
from tflq.interpreter.kernels.openvino.levels import CODES
from tflq.interpreter.operands.checks import require_type


@dataclass(frozen=True)
class MaxPoolParams:
    """The numbers of one pool.

    Attributes:
        window: kernel, stride, padding.
        lowest: smallest code, outside the image.
    """

    window: Window
    lowest: int


def lower(node: Node, operands: Operands) -> MaxPoolParams:
    """Decide the window of MAX_POOL_2D.

    Raises:
        UnsupportedError: no codes, a fused activation, or an output with another range.
    """
    x, output = operands.input(0), operands.output()
    require_type(x, CODES)
    if output.quantisation != x.quantisation or node.attributes.text("fused_activation_function", "none") != "none":
        raise UnsupportedError("a max pool on codes keeps its input's range and has no activation")
    kernel = (node.attributes.integer("filter_height"), node.attributes.integer("filter_width"))
    return MaxPoolParams(window_of(node.attributes, (x.shape[1], x.shape[2]), kernel), x.dtype.minimum)


def run(params: MaxPoolParams, x: Array) -> tuple[Array, ...]:
    """Run MAX_POOL_2D: codes [S, N, H, W, C] -> codes [S, N, OH, OW, C]."""
    return (window_maxima(params.window, x, params.lowest),)
