"""GATHER_ND: slices of input 0, each chosen by the coordinates in the last axis of input 1.

Source: TFLite kernels/gather_nd.cc and internal/reference/reference_ops.h (GatherNd).
"""

from __future__ import annotations

from dataclasses import dataclass

from tflq.errors import GraphError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.operands.checks import require_type
from tflq.interpreter.operands.indexing import checked_indices, sample_index
from tflq.interpreter.operands.movable import require_movable
from tflq.interpreter.operands.result_size import require_result

TYPES = (
    DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16, DType.FLOAT8_E4M3FN, DType.FLOAT8_E5M2, DType.UINT8, DType.INT8,
    DType.INT16, DType.INT32, DType.INT64, DType.BOOL, DType.STRING,
)  # fmt: skip
INDICES = (DType.INT16, DType.INT32, DType.INT64)


@dataclass(frozen=True)
class GatherNd:
    """Number of axes that the coordinates index."""

    axes: int


def lower(node: Node, operands: Operands) -> GatherNd:
    """Decide how many axes are indexed.

    Raises:
        GraphError: scalars, no coordinate, or more coordinates than axes.
        UnsupportedError: a type that TFLite does not gather.
    """
    source, indices = operands.input(0), operands.input(1)
    require_type(indices, INDICES)
    require_movable(node, source, operands.output(), TYPES)
    if not source.shape or not indices.shape or not 1 <= indices.shape[-1] <= len(source.shape):
        raise GraphError(f"indices of shape {indices.shape} do not index an input of shape {source.shape}")
    require_result((*indices.shape[:-1], *source.shape[indices.shape[-1] :]), source.dtype)
    return GatherNd(indices.shape[-1])


def run(params: GatherNd, x: Array, indices: Array) -> tuple[Array, ...]:
    """Run GATHER_ND: T[S or 1, *indexed, *inner], [S or 1, *places, n] -> T[S, *places, *inner].

    Raises:
        InputError: an index out of range.
    """
    coordinates = [
        checked_indices(indices[..., i], x.shape[i + 1], f"axis {i} of the input") for i in range(params.axes)
    ]
    where = (sample_index(x, indices.ndim - 1), *coordinates)
    return (x[where],)
