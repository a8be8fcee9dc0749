"""The window of a pool, the same in every arithmetic."""

from __future__ import annotations

from tflq.errors import GraphError
from tflq.graph import Node, Operands
from tflq.interpreter.accumulate import Window, window_of
from tflq.interpreter.operands.checks import require_same_type


def pool_window(node: Node, operands: Operands) -> tuple[Window, tuple[int, int]]:
    """Return the window and the input's (height, width).

    Raises:
        UnsupportedError: input and output have different types.
        GraphError: the input is no image [N, H, W, C], or the window does not fit.
    """
    x = operands.input(0)
    require_same_type(x, operands.output())
    if len(x.shape) != 4:
        raise GraphError(f"input '{x.name}' has shape {x.shape}; a pool takes [N, H, W, C]")
    size = (x.shape[1], x.shape[2])
    kernel = (node.attributes.integer("filter_height"), node.attributes.integer("filter_width"))
    return window_of(node.attributes, size, kernel), size
