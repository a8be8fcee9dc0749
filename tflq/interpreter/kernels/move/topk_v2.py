"""TOPK_V2: the k largest elements of each row (the last axis), largest first, and their places.

Of equal elements the first comes first.

Source: TFLite kernels/topk_v2.cc.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.operands.checks import require_type
from tflq.interpreter.operands.movable import constant_number, require_movable

TYPES = (DType.FLOAT32, DType.UINT8, DType.INT8, DType.INT16, DType.INT32, DType.INT64)
INDICES = (DType.INT32, DType.INT16)


@dataclass(frozen=True)
class TopkV2:
    """How many.

    Attributes:
        k: number of elements.
        index_dtype: numpy's name of the type of the places.
    """

    k: int
    index_dtype: str


def lower(node: Node, operands: Operands) -> TopkV2:
    """Decide k.

    Raises:
        GraphError: k above the length of a row or computed at run time, or a scalar input.
        UnsupportedError: types that TFLite does not take, or rows too long for the type of the places.
    """
    source, places = operands.input(0), operands.output(1)
    require_movable(node, source, operands.output(), TYPES)
    require_type(places, INDICES)
    k = max(0, constant_number(operands, 1, INDICES))
    if not source.shape or k > source.shape[-1]:
        raise GraphError(f"k is {k}; the rows of an input of shape {source.shape} are shorter")
    if k and source.size and source.shape[-1] > places.dtype.maximum:
        raise UnsupportedError(f"rows have {source.shape[-1]} elements; {places.dtype.value} does not count so far")
    return TopkV2(k, places.dtype.value)


def run(params: TopkV2, x: Array, *_k: Array) -> tuple[Array, ...]:
    """Run TOPK_V2: T[S, *rows, n] -> T[S, *rows, k], int[S, *rows, k].

    NaN counts as smaller than every number.
    """
    descending = np.negative(x) if x.dtype.kind == "f" else np.invert(x)  # -(-128) would overflow, ~(-128) does not
    places = np.argsort(descending, axis=-1, kind="stable")[..., : params.k]
    return np.take_along_axis(x, places, -1), places.astype(params.index_dtype)
