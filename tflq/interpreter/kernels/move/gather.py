"""GATHER: slices of input 0 along an axis, chosen by the indices in input 1.

With batch_dims b the first b axes of both are the same batches: each batch has its own indices.

Source: TFLite kernels/gather.cc and internal/reference/gather.h.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Array, DType, Node, Operands, Tensor
from tflq.interpreter.operands.checks import require_type, resolve_axis
from tflq.interpreter.operands.indexing import checked_indices, sample_index
from tflq.interpreter.operands.movable import require_movable
from tflq.interpreter.operands.result_size import require_result

TYPES = (
    DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16, DType.FLOAT8_E4M3FN, DType.FLOAT8_E5M2, DType.UINT8, DType.INT4,
    DType.INT8, DType.INT16, DType.INT32, DType.INT64, DType.BOOL, DType.STRING,
)  # fmt: skip
INDICES = (DType.INT16, DType.INT32, DType.INT64)


@dataclass(frozen=True)
class Gather:
    """Where to gather, in the model's own axes.

    Attributes:
        axis: counted from 0.
        batch_dims: number of leading axes that are batches.
    """

    axis: int
    batch_dims: int


def lower(node: Node, operands: Operands) -> Gather:
    """Decide axis and batches.

    Raises:
        GraphError: an axis out of range, batches that differ.
        UnsupportedError: a type that TFLite does not gather.
    """
    source, indices = operands.input(0), operands.input(1)
    require_type(indices, INDICES)
    dtype = require_movable(node, source, operands.output(), TYPES)
    axis = resolve_axis(node.attributes.integer("axis", 0), len(source.shape))
    batch_dims = node.attributes.integer("batch_dims", 0)
    batch_dims += len(indices.shape) * (batch_dims < 0)
    if not 0 <= batch_dims <= min(axis, len(indices.shape)):
        raise GraphError(f"batch_dims is {batch_dims}; 0 to the axis {axis} and the rank of the indices are allowed")
    if source.shape[:batch_dims] != indices.shape[:batch_dims]:
        raise GraphError(f"shapes {source.shape} and {indices.shape} differ in the first {batch_dims} axes")
    if dtype is DType.STRING and len(source.shape) != 1:
        raise UnsupportedError(f"strings have shape {source.shape}; TFLite gathers them from a vector only")
    if dtype is DType.INT4:
        _require_whole_bytes(source, axis)
    places = indices.shape[batch_dims:]
    require_result((*source.shape[:axis], *places, *source.shape[axis + 1 :]), dtype)
    return Gather(axis, batch_dims)


def run(params: Gather, x: Array, indices: Array) -> tuple[Array, ...]:
    """Run GATHER: T[S or 1, *B, *outer, N, *inner], [S or 1, *B, *places] -> T[S, *B, *outer, *places, *inner].

    Raises:
        InputError: an index out of range.
    """
    axis, batches = params.axis + 1, params.batch_dims + 1
    chosen = checked_indices(indices, x.shape[axis], f"axis {params.axis} of the input")
    outer, places, inner = x.shape[batches:axis], indices.shape[batches:], x.shape[axis + 1 :]
    if batches == 1 and chosen.shape[0] == 1:
        return (np.take(x, chosen[0], axis),)
    batch = prod(x.shape[1:batches])
    data = x.reshape(x.shape[0], batch, prod(outer), x.shape[axis], prod(inner))
    result = data[
        sample_index(x, 4),
        np.arange(batch)[:, None, None],
        np.arange(prod(outer))[:, None],
        chosen.reshape(chosen.shape[0], batch, 1, prod(places)),
    ]
    return (result.reshape(result.shape[0], *x.shape[1:axis], *places, *inner),)


def _require_whole_bytes(source: Tensor, axis: int) -> None:
    inner = prod(source.shape[axis + 1 :])
    if inner % 2:
        raise UnsupportedError(f"slices of {inner} int4 elements do not fill whole bytes; TFLite gathers bytes")
