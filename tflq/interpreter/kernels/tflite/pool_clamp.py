"""The clamp of a quantised pool's fused activation."""

from __future__ import annotations

from tflq.graph import DType, Node, Operands
from tflq.interpreter.numerics.fixed_point import activation_range
from tflq.interpreter.operands.checks import EIGHT_BITS, is_quantised, per_tensor, require_type


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
