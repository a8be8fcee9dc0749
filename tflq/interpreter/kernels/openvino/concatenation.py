"""CONCATENATION of quantized values with ranges of their own (non-unified).

Each is brought to the levels of the output.

Source: docs/openvino.md, 2
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.graph import Affine, Array, DType, Node, Operands
from tflq.interpreter.kernels.move.concatenation import Concatenation, check_shapes, concatenate
from tflq.interpreter.kernels.openvino.levels import (
    CODES,
    Levels,
    finish,
    input_rule,
    levels_of,
    real_values,
    same_input_and_output,
)
from tflq.interpreter.operands.checks import require_type


@dataclass(frozen=True, eq=False)
class ConcatenationParams:
    """The params of one concatenation.

    Attributes:
        place: the axis.
        sources: of each input; None for reals.
        kept: whether an input has the output's quantized values already.
        levels: of the output; None for float32.
    """

    place: Concatenation
    sources: tuple[Affine | None, ...]
    kept: tuple[bool, ...]
    levels: Levels | None


def lower(node: Node, operands: Operands) -> ConcatenationParams:
    """Decide the params of CONCATENATION.

    Raises:
        UnsupportedError: other types than quantized values and float32.
        GraphError: shapes that do not fit.
    """
    tensors = [operands.input(i) for i in range(len(operands.inputs))]
    for tensor in tensors:
        require_type(tensor, (*CODES, DType.FLOAT32))
    place, output = check_shapes(node, operands), operands.output()
    sources = tuple(t.affine if t.dtype.is_integer else None for t in tensors)
    unified = output.dtype.is_floating or same_input_and_output(input_rule(node, output))
    kept = tuple(unified and t.dtype.is_integer and t.quantisation == output.quantisation for t in tensors)
    return ConcatenationParams(place, sources, kept, levels_of(node, output))


def run(params: ConcatenationParams, *arrays: Array) -> tuple[Array, ...]:
    """Run CONCATENATION: quantized values or reals [S or 1, *shape_i] -> quantized values or float32 [S, *shape]."""
    parts = []
    for x, affine, kept in zip(arrays, params.sources, params.kept, strict=True):
        real = x.astype(np.float64) if affine is None else real_values(x, affine)
        parts.append(x if kept else finish(real, params.levels))
    return (concatenate(params.place, parts),)
