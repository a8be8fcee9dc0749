"""Types of outputs where the whitepaper has others than the Optimizer (docs/aipu.md, 10)."""

from __future__ import annotations

import numpy as np

from tflq.converters.aipu.options import LayerOptions
from tflq.converters.aipu.outputs import OutputType, code_type
from tflq.graph import Affine, Node, Operands
from tflq.interpreter.kernels.aipu.scales import affine_of, offset_of, reciprocal
from tflq.interpreter.kernels.aipu.whitepaper import covers


def paper_types(node: Node, operands: Operands, asked: LayerOptions) -> tuple[OutputType, ...] | None:
    """Return the types of a layer's outputs; None where they are the Optimizer's, or the variant was not asked for.

    Negative: zp_y = -zp_x of signed codes (those of unsigned ones would not fit). Reduce MEAN: as the input. Softmax:
    s_y = 2^bits - 1, zp_y = 0. Count: s = 1, zp = 0.
    """
    if not (asked.by_whitepaper and covers(node)):
        return None
    x = operands.input(0)
    if node.operator == "reduce":
        return ((x.dtype, x.quantisation),)
    if node.operator == "negative" and x.affine.signed:
        return (_typed(affine_of(reciprocal(x.affine), -offset_of(x), x.affine.bits, True)),)
    if node.operator == "softmax":
        bits = asked.activation_bits
        return (_typed(affine_of(np.float32((1 << bits) - 1), 0, bits, False)),)
    if node.operator == "count":
        return (_typed(affine_of(np.float32(1), 0, 16, False)),)
    return None


def _typed(affine: Affine) -> OutputType:
    return code_type(affine), affine
