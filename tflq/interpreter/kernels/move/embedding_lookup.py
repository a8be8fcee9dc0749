"""EMBEDDING_LOOKUP: rows of the table in input 1, chosen by the indices in input 0.

Where the table holds integers and the output is float, value = scale * q in float32 (zero points are not looked at),
then rounded to float16 where that is the output's type. The scale is that of the table, the row, or the block of a
row. TFLite's kernel has its quirks, which are kept: uint8 tables are read as int8; rows of int4 and int2 begin at whole
bytes, so rows that do not fill them are read shifted.

Source: TFLite kernels/embedding_lookup.cc.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Affine, Array, Blockwise, DType, Node, Operands, Tensor
from tflq.interpreter.operands.block_scales import block_scales
from tflq.interpreter.operands.checks import require_type
from tflq.interpreter.operands.indexing import checked_indices, sample_index
from tflq.interpreter.operands.result_size import require_result
from tflq.interpreter.operands.sound_scales import require_sound_tensor

HYBRID = (DType.UINT8, DType.INT8, DType.INT4, DType.INT2)


@dataclass(frozen=True, eq=False)
class EmbeddingLookup:
    """How values become the output's.

    Attributes:
        scale: float32[rows, blocks] of a table that is dequantised, None where its values are moved.
        dtype: numpy's name of the output's type.
        per_byte: elements in one byte of the table.
    """

    scale: NDArray[np.float32] | None
    dtype: str
    per_byte: int


def lower(node: Node, operands: Operands) -> EmbeddingLookup:  # noqa: ARG001
    """Decide the scales.

    Raises:
        GraphError: indices that are no vector, a table of less than two axes, scales or blocks that do not fit it,
            scales that are no positive finite numbers.
        UnsupportedError: types that TFLite does not look up, or a zero point.
    """
    indices, table, output = operands.input(0), operands.input(1), operands.output()
    require_type(indices, (DType.INT32,))
    if len(indices.shape) != 1 or len(table.shape) < 2:
        raise GraphError(f"indices {indices.shape} and table {table.shape}: one axis, and two or more, are needed")
    require_type(table, tuple(dtype for dtype in DType if dtype.bits))
    require_result((*indices.shape, *table.shape[1:]), output.dtype)
    per_byte = max(1, 8 // table.dtype.bits)
    if output.dtype is table.dtype:
        if prod(table.shape[1:]) % per_byte:
            raise UnsupportedError(f"rows of shape {table.shape[1:]} of {table.dtype.value} do not fill whole bytes")
        return EmbeddingLookup(None, table.dtype.storage.name, per_byte)
    require_type(table, HYBRID)
    require_type(output, (DType.FLOAT32, DType.FLOAT16))
    scale = (
        block_scales(operands, 1, (DType.INT4, DType.INT2))
        if isinstance(table.quantisation, Blockwise)
        else _scales(table, output)
    )
    return EmbeddingLookup(scale, output.dtype.storage.name, per_byte)


def run(params: EmbeddingLookup, indices: Array, table: Array) -> tuple[Array, ...]:
    """Run EMBEDDING_LOOKUP: int32[S or 1, n], T[S or 1, rows, *row] -> U[S, n, *row].

    Raises:
        InputError: an index out of range.
    """
    rows = checked_indices(indices, table.shape[1], "the table")
    if params.scale is None:
        return (table[sample_index(table, 2), rows],)
    size = prod(table.shape[2:])
    begin = rows * size // params.per_byte * params.per_byte
    flat = table.reshape(table.shape[0], -1).view(np.int8)
    codes = flat[sample_index(table, 3), begin[..., None] + np.arange(size)]
    blocks = params.scale.shape[1]
    scale = np.repeat(params.scale, size // blocks, 1) if blocks > 1 else params.scale
    values = codes.astype(np.float32) * scale[rows]
    return (values.astype(params.dtype).reshape(*values.shape[:2], *table.shape[2:]),)


def _scales(table: Tensor, output: Tensor) -> NDArray[np.float32]:
    if not isinstance(table.quantisation, Affine):
        raise UnsupportedError(f"the table '{table.name}' ({table.dtype.value}) has no scales, the output is float")
    require_sound_tensor(table)
    affine, rows = table.quantisation, table.shape[0]
    if affine.scale.size > 1 and (affine.axis != 0 or affine.scale.size != rows):
        raise GraphError(f"{affine.scale.size} scales along axis {affine.axis} do not fit a table of {rows} rows")
    if affine.zero_point.size and affine.zero_point[0] and output.dtype is DType.FLOAT32:
        raise UnsupportedError(f"the table '{table.name}' has zero point {affine.zero_point[0]}; only 0 is allowed")
    return np.broadcast_to(affine.scale.astype(np.float32)[:, None], (rows, 1))
