"""WHERE and UNIQUE: as many elements as the values of a sample decide."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import GraphError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.operands.checks import require_same_type, require_type
from tflq.interpreter.operands.movable import INDEX_TYPES
from tflq.interpreter.registry import Kernel

_CONDITIONS = (DType.BOOL, DType.FLOAT32, DType.INT64, DType.INT32, DType.INT8, DType.UINT8, DType.UINT32)


@dataclass(frozen=True)
class Where:
    """Number of the model's own axes."""

    rank: int


def _lower_where(node: Node, operands: Operands) -> Where:  # noqa: ARG001
    """Count the axes.

    Raises:
        GraphError: a scalar condition.
        UnsupportedError: a type that TFLite does not take, or an output that is not int64.
    """
    require_type(operands.input(0), _CONDITIONS)
    require_type(operands.output(), (DType.INT64,))
    if not operands.input(0).shape:
        raise GraphError(f"'{operands.input(0).name}' is a scalar; a condition has one axis at least")
    return Where(len(operands.input(0).shape))


def _run_where(params: Where, x: Array) -> tuple[Array, ...]:
    """Run WHERE: T[1, *shape] -> int64[1, found, rank]."""
    return (np.argwhere(x[0]).astype(np.int64).reshape(1, -1, params.rank),)


_VALUES = (DType.FLOAT32, DType.UINT8, DType.INT8, DType.INT16, DType.INT32, DType.INT64)


@dataclass(frozen=True)
class Unique:
    """numpy's name of the type of the places."""

    index_dtype: str


def _lower_unique(node: Node, operands: Operands) -> Unique:
    """Decide the type of the places.

    Raises:
        GraphError: an input that is no vector.
        UnsupportedError: types that TFLite does not take, or places of another type than the option idx_out_type.
    """
    source, places = operands.input(0), operands.output(1)
    require_type(source, _VALUES)
    require_same_type(source, operands.output())
    require_type(places, tuple(t for t in INDEX_TYPES if t.value == node.attributes.text("idx_out_type", "int32")))
    if len(source.shape) != 1:
        raise GraphError(f"'{source.name}' has shape {source.shape}; a vector is needed")
    return Unique(places.dtype.value)


def _run_unique(params: Unique, x: Array) -> tuple[Array, ...]:
    """Run UNIQUE: T[1, n] -> T[1, found], int[1, n]."""
    _, first, inverse = np.unique(x[0], return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    return x[:, first[order]], rank[inverse].astype(params.index_dtype)[None]


KERNELS = {
    "where": Kernel(_lower_where, _run_where,
        "the coordinates of all elements that are not zero, in the order of the elements",
        "TFLite kernels/where.cc and internal/reference/reference_ops.h (SelectTrueCoords)", per_sample=True),
    "unique": Kernel(_lower_unique, _run_unique,
        "the different elements of a vector in the order in which they come first, and for each element its place",
        "TFLite kernels/unique.cc", per_sample=True),
}  # fmt: skip
