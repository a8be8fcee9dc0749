"""Scales of constants that are quantised in blocks along their last axis."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from tflq.errors import GraphError
from tflq.graph import Blockwise, DType, Operands
from tflq.interpreter.operands.checks import require_type


def block_scales(operands: Operands, position: int, allowed: Collection[DType]) -> NDArray[np.float32]:
    """Return the scales of a matrix that is quantised in blocks: float32[rows, blocks].

    Args:
        operands: of the node.
        position: of the matrix among the inputs; `operands.block_scales` has a tensor of float16 for it.
        allowed: types of the matrix.

    Raises:
        GraphError: blocks that do not fill the rows or whole bytes, no constant of as many scales, or a
            scale that is negative, infinite or NaN. 0 is what float16 makes of the scale of a block of tiny numbers.
        UnsupportedError: another type.
    """
    matrix, scales = operands.input(position), operands.block_scales[position] if operands.block_scales else None
    size = matrix.quantisation.block_size if isinstance(matrix.quantisation, Blockwise) else 0
    require_type(matrix, allowed)
    if len(matrix.shape) != 2 or size < 1 or matrix.shape[1] % size or size % (8 // matrix.dtype.bits):
        raise GraphError(f"blocks of {size} do not fill the rows of '{matrix.name}' {matrix.shape}, or whole bytes")
    if scales is None or scales.data is None or scales.size != matrix.size // size:
        raise GraphError(f"'{matrix.name}' needs a constant of {matrix.size // size} scales for its blocks")
    require_type(scales, (DType.FLOAT16,))
    found = scales.data.astype(np.float32).reshape(matrix.shape[0], -1)
    sound = np.isfinite(found) & (found >= 0)
    if not sound.all():
        raise GraphError(
            f"the scales '{scales.name}' of '{matrix.name}' hold {found[~sound][0]}; scales are finite, and 0 or more"
        )
    return found
