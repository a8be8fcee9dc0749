"""Types of outputs that a rule of the layer decides, one by one: counts, indices, boxes, codes that pass."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tflq.converters.aipu.special import negative_type
from tflq.graph import Affine, DType, Node, Operands, Quantisation, Tensor
from tflq.interpreter.kernels.aipu.boxes import hidden_scale
from tflq.interpreter.kernels.aipu.scales import affine_of

OutputType = tuple[DType, Quantisation | None]
_Rule = Callable[[Node, Operands], tuple[OutputType, ...]]


def fixed_types(node: Node, operands: Operands) -> tuple[OutputType, ...]:
    """Return the type of each output of a layer with `Signs.FIXED`; inputs and hidden tensors have theirs."""
    return _RULES[node.operator](node, operands)


def code_type(affine: Affine) -> DType:
    """Return the element type that holds codes."""
    bits = next(b for b in (8, 16, 32) if affine.bits <= b)
    return DType(f"{'int' if affine.signed else 'uint'}{bits}")


def _typed(affine: Affine) -> OutputType:
    return code_type(affine), affine


def _plain(bits: int, signed: bool = False, zp: int = 0) -> OutputType:
    """Return the type of counts, indices and truth values: scale 1."""
    return _typed(affine_of(np.float32(1), zp, bits, signed))


def _like(tensor: Tensor) -> OutputType:
    return tensor.dtype, tensor.quantisation


def _proposal(_node: Node, operands: Operands) -> tuple[OutputType, ...]:
    """Scores pass; boxes have the largest power of two below the scale of the coordinates."""
    s = np.exp2(np.floor(np.log2(hidden_scale(operands, 0))))
    return _like(operands.input(0)), _typed(affine_of(np.float32(s), 0, 16)), _plain(16), _plain(16)


_RULES: dict[str, _Rule] = {
    "arg_min_max": lambda _, o: (_plain(16),) * len(o.outputs),
    "logical": lambda _, o: (_plain(8),) * len(o.outputs),
    "negative": lambda _, o: (_typed(negative_type(o.input(0))),),
    "proposal": _proposal,
    "sign": lambda _, o: (_plain(o.input(0).affine.bits, True),),
}
