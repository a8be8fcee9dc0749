"""UNIQUE: the different elements of a vector in the order in which they come first, and for each element its place.

Source: TFLite kernels/unique.cc.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import GraphError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.operands.checks import require_same_type, require_type
from tflq.interpreter.operands.movable import INDEX_TYPES

PER_SAMPLE = True
TYPES = (DType.FLOAT32, DType.UINT8, DType.INT8, DType.INT16, DType.INT32, DType.INT64)


@dataclass(frozen=True)
class Unique:
    """numpy's name of the type of the places."""

    index_dtype: str


def lower(node: Node, operands: Operands) -> Unique:
    """Decide the type of the places.

    Raises:
        GraphError: an input that is no vector.
        UnsupportedError: types that TFLite does not take, or places of another type than the option says.
    """
    source, places = operands.input(0), operands.output(1)
    require_type(source, TYPES)
    require_same_type(source, operands.output())
    require_type(places, tuple(t for t in INDEX_TYPES if t.value == node.attributes.text("idx_out_type", "int32")))
    if len(source.shape) != 1:
        raise GraphError(f"'{source.name}' has shape {source.shape}; a vector is needed")
    return Unique(places.dtype.value)


def run(params: Unique, x: Array) -> tuple[Array, ...]:
    """Run UNIQUE: T[1, n] -> T[1, found], int[1, n]."""
    _, first, inverse = np.unique(x[0], return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    return x[:, first[order]], rank[inverse].astype(params.index_dtype)[None]
