"""BUCKETIZE: how many boundaries are not above x: int32. Integers are compared as float32; NaN is above all.

Source: TFLite kernels/bucketize.cc.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tflq.errors import GraphError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.plain.elementwise import lower_unary

TYPES = (DType.FLOAT32, DType.FLOAT64, DType.INT32, DType.INT64)


@dataclass(frozen=True, eq=False)
class Bucketize:
    """The boundaries, ascending: float32[N]."""

    boundaries: NDArray[np.float32]


def lower(node: Node, operands: Operands) -> Bucketize:
    """Read the boundaries.

    Raises:
        UnsupportedError: a type that TFLite's kernel does not take.
        GraphError: boundaries that are missing or not ascending.
    """
    lower_unary(operands, TYPES, DType.INT32)
    given = node.attributes.get("boundaries")
    if not isinstance(given, (tuple, np.ndarray)):
        raise GraphError(f"attribute boundaries: found {given!r}, allowed is a list of numbers")
    boundaries = np.array(given, np.float32)
    if np.any(boundaries[1:] < boundaries[:-1]):
        raise GraphError("the boundaries are not ascending")
    return Bucketize(boundaries)


def run(params: Bucketize, x: Array) -> tuple[Array, ...]:
    """Run BUCKETIZE: T[S, *shape] -> int32[S, *shape]."""
    compared = x if x.dtype == np.float64 else x.astype(np.float32)
    return (np.searchsorted(params.boundaries, compared, side="right").astype(np.int32),)
