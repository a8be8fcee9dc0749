"""PADV2: as PAD, with a value of its own in input 2, which must share the output's scale and zero point.

Source: TFLite kernels/pad.cc.
"""

from __future__ import annotations

from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.move import pad
from tflq.interpreter.kernels.move.pad import Pad, lower_paddings
from tflq.interpreter.operands.checks import EIGHT_BITS, is_quantised, per_tensor, require_same_type


def lower(node: Node, operands: Operands) -> Pad:
    """Decide amounts and value.

    Raises:
        GraphError: amounts of another shape, negative or computed at run time; a value that is no single constant.
        UnsupportedError: too many axes, other types, or a value quantised otherwise than the output.
    """
    value, output = operands.optional(2), operands.output()
    if value is None:
        return pad.lower(node, operands)
    paddings = lower_paddings(node, operands)
    require_same_type(output, value)
    if value.size != 1:
        raise GraphError(f"input 2 has {value.size} elements; the value is one")
    quantised = is_quantised(output) and output.dtype in (*EIGHT_BITS, DType.INT16)
    if quantised and per_tensor(value) != per_tensor(output):
        raise UnsupportedError(
            f"the value '{value.name}' and the output '{output.name}' differ in scale or zero point; they must be equal"
        )
    return Pad(paddings, operands.constant(2).reshape(1))


def run(params: Pad, x: Array, *operands: Array) -> tuple[Array, ...]:
    """Run PADV2: T[S, *shape] -> T[S, *padded shape]."""
    return pad.run(params, x, *operands)
