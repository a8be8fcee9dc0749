"""What the two pools share: the window and the clamp of the fused activation."""

from __future__ import annotations

from tflq.errors import GraphError
from tflq.graph import DType, Node, Operands
from tflq.interpreter.accumulate import Window, window_of
from tflq.interpreter.fixed_point import activation_range
from tflq.interpreter.operand_checks import EIGHT_BITS, is_quantised, per_tensor, require_same_type, require_type


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


def pool_clamp(node: Node, operands: Operands) -> tuple[int, int]:
    """Return smallest and largest code after the fused activation.

    Raises:
        UnsupportedError: a type that is neither 8 bits nor int16, or an unknown activation.
    """
    dtype = require_type(operands.input(0), (*EIGHT_BITS, DType.INT16))
    activation = node.attributes.text("fused_activation_function", "none")
    output = operands.output()
    if activation == "none" and not is_quantised(output):
        return dtype.minimum, dtype.maximum
    scale, zero_point = per_tensor(output)
    return activation_range(activation, scale, zero_point, dtype.minimum, dtype.maximum)
