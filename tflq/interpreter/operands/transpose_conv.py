"""Shapes of TRANSPOSE_CONV, the same in every arithmetic. Source: TFLite kernels/transpose_conv.cc (Prepare)."""

from __future__ import annotations

from tflq.errors import GraphError
from tflq.graph import Node, Operands
from tflq.interpreter.accumulate.transposed import TransposedWindow
from tflq.interpreter.accumulate.window import window_of
from tflq.interpreter.operands.checks import constant_integers, require_bias_size
from tflq.interpreter.operands.result_size import require_result


def transposed_window(node: Node, operands: Operands) -> TransposedWindow:
    """Return window and output size: inputs are the output's shape, weights [O, KH, KW, C], x [N, H, W, C], bias.

    Padding is that of a convolution over the output.

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
    return TransposedWindow(window_of(node.attributes, size, (weights.shape[1], weights.shape[2])), size)
