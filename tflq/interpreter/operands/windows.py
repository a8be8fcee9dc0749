"""The windows of convolutions, forward and transposed, and of pools: TFLite's in every arithmetic, or a node's own."""

from __future__ import annotations

from dataclasses import replace

from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Node, Operands, Tensor
from tflq.interpreter.operands.checks import constant_integers, require_bias_size, require_result, require_same_type
from tflq.interpreter.operands.sliding_windows import Pair, Window, window_of


def window_of_node(node: Node, input_shape: tuple[int, ...], weights_shape: tuple[int, ...] = ()) -> Window:
    """Return the window of a convolution or pool.

    Args:
        node: Node with TFLite's attributes, and `explicit_padding` (top, bottom, left, right) if a PAD was folded.
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


def pool_window(node: Node, operands: Operands) -> tuple[Window, Pair]:
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


def transposed_window(node: Node, operands: Operands) -> tuple[Window, Pair]:
    """Return the window over the output and the output's (height, width).

    Inputs are the output's shape, weights [O, KH, KW, C], x [N, H, W, C], bias. Padding is as of a convolution over
    the output.

    Raises:
        GraphError: shapes that contradict each other, or an output shape computed at run time.
        UnsupportedError: another padding.
    """
    weights, x, bias = operands.input(1), operands.input(2), operands.optional(3)
    wanted = tuple(int(size) for size in constant_integers(operands, 0).reshape(-1))
    if len(x.shape) != 4 or len(weights.shape) != 4 or len(wanted) != 4:
        raise GraphError(f"input {x.shape}, weights {weights.shape} and the output {wanted} must have 4 axes each")
    outputs, channels = weights.shape[0], weights.shape[3]
    if x.shape[3] != channels or wanted[0] != x.shape[0] or wanted[3] != outputs or min(wanted) < 1:
        raise GraphError(f"weights {weights.shape} do not lead from an input {x.shape} to an output {wanted}")
    require_bias_size(bias, outputs)
    require_result(wanted, operands.output().dtype)
    size = (wanted[1], wanted[2])
    return window_of(node.attributes, size, (weights.shape[1], weights.shape[2])), size


_LARGEST = (1 << 15) - 1


def require_strides(node: Node) -> None:
    """Check the strides of CONV_2D.

    Raises:
        UnsupportedError: one is larger than 32767.
    """
    strides = (node.attributes.integer("stride_h"), node.attributes.integer("stride_w"))
    if max(strides) > _LARGEST:
        raise UnsupportedError(f"strides {strides}; conv_2d takes up to {_LARGEST}")


def groups_of(x: Tensor, weights: Tensor, channels_last: bool) -> tuple[int, int]:
    """Return groups and output channels of a convolution: input [N, H, W, C], weights [O, KH, KW, C / groups].

    Args:
        x: the input.
        weights: the weights.
        channels_last: weights are depthwise [1, KH, KW, O].

    Raises:
        GraphError: shapes that contradict each other.
    """
    if len(x.shape) != 4 or len(weights.shape) != 4:
        raise GraphError(f"input {x.shape} and weights {weights.shape} must both have 4 axes")
    channels = x.shape[3]
    outputs, depth = (weights.shape[3], 1) if channels_last else (weights.shape[0], weights.shape[3])
    groups = channels // depth if depth > 0 and channels % depth == 0 else 0
    if groups < 1 or outputs % groups or (channels_last and weights.shape[0] != 1):
        kind = "depthwise weights" if channels_last else "weights"
        raise GraphError(f"{kind} {weights.shape} do not fit {channels} input channels")
    return groups, outputs
