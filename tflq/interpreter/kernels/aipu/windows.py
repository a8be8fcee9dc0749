"""Windows from the keys of Compass IR: kernel_*, stride_*, dilation_*, pad_*."""

from __future__ import annotations

from tflq.graph import Node, Tensor
from tflq.interpreter.accumulate import Window


def window_of(node: Node, x: Tensor, output: Tensor) -> Window:
    """Return the window of a layer.

    The padding below and to the right is what the output's size needs: ceil_mode may need more than is stated.

    Args:
        node: with the keys.
        x: [N, H, W, C].
        output: [N, OH, OW, O].

    Raises:
        GraphError: a key is missing, or sizes below 1.
    """
    value = node.attributes.integer
    kernel = (value("kernel_y"), value("kernel_x"))
    stride = (value("stride_y"), value("stride_x"))
    dilation = (value("dilation_y", 1), value("dilation_x", 1))
    top, left = value("pad_top"), value("pad_left")
    extents = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    bottom, right = (
        max(0, (o - 1) * s + e - i - before)
        for o, s, e, i, before in zip(output.shape[1:3], stride, extents, x.shape[1:3], (top, left), strict=True)
    )
    return Window(kernel, stride, dilation, top, bottom, left, right)
