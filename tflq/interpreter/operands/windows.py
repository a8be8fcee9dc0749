"""The windows of convolutions and pools, the same in every arithmetic: TFLite's, or one that a folded PAD left."""

from __future__ import annotations

from dataclasses import replace

from tflq.errors import GraphError
from tflq.graph import Node, Operands
from tflq.interpreter.accumulate import Window, window_of
from tflq.interpreter.operands.checks import require_same_type


def window_of_node(node: Node, input_shape: tuple[int, ...], weights_shape: tuple[int, ...] = ()) -> Window:
    """Return the window of a convolution or pool.

    Args:
        node: with TFLite's attributes, and `explicit_padding` (top, bottom, left, right) where a PAD was folded.
        input_shape: (N, H, W, C).
        weights_shape: (O or 1, KH, KW, ...); empty for a pool.

    Raises:
        GraphError: the window does not fit the image.
    """
    kernel = (
        (weights_shape[1], weights_shape[2])
        if weights_shape
        else (node.attributes.integer("filter_height"), node.attributes.integer("filter_width"))
    )
    size = (input_shape[1], input_shape[2])
    explicit = node.attributes.integers("explicit_padding", ())
    if not explicit:
        return window_of(node.attributes, size, kernel)
    plain = window_of(node.attributes.updated(padding="valid"), (1 << 30, 1 << 30), kernel)
    top, bottom, left, right = explicit
    window = replace(plain, top=top, bottom=bottom, left=left, right=right)
    window.output_size(size)
    return window


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
    return window_of_node(node, x.shape), (x.shape[1], x.shape[2])
