"""DILATE: copies of the value in input 2 between the elements along each axis, as far apart as input 1 says.

Source: TFLite kernels/dilate.cc.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import GraphError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.operands.checks import require_same_type
from tflq.interpreter.operands.movable import constant_vector, require_movable
from tflq.interpreter.operands.result_size import require_result

TYPES = tuple(dtype for dtype in DType if dtype.bits >= 8)


@dataclass(frozen=True)
class Dilate:
    """Distance of neighbours along each of the model's own axes."""

    dilations: tuple[int, ...]


def lower(node: Node, operands: Operands) -> Dilate:
    """Decide the distances.

    Raises:
        GraphError: another number of them than axes, one below 1 or computed at run time, an empty input, or a value
            that is no single element.
        UnsupportedError: types that differ, or that TFLite does not dilate.
    """
    source, value = operands.input(0), operands.input(2)
    require_movable(node, source, operands.output(), TYPES)
    require_same_type(source, value)
    dilations = constant_vector(operands, 1, (DType.INT32,))
    if not source.shape or len(dilations) != len(source.shape) or min(dilations) < 1:
        raise GraphError(f"dilations are {dilations}; {source.shape} needs one for each axis, 1 or more")
    if value.size != 1 or not source.size:
        raise GraphError(f"an input of shape {source.shape} is filled with {value.size} elements; none or one is wrong")
    require_result([(n - 1) * step + 1 for n, step in zip(source.shape, dilations, strict=True)], source.dtype)
    return Dilate(dilations)


def run(params: Dilate, x: Array, _dilations: Array | None, value: Array) -> tuple[Array, ...]:
    """Run DILATE: T[S or 1, *shape], T[S or 1] -> T[S, *((shape - 1) * dilation + 1)]."""
    return (dilated(x, params.dilations, value.reshape(-1)),)


def dilated(x: Array, dilations: tuple[int, ...], value: Array) -> Array:
    """Set elements apart: T[S or 1, *shape], T[S or 1] -> T[S, *((shape - 1) * dilation + 1)], empty axes left."""
    if set(dilations) <= {1}:
        return x
    samples = max(x.shape[0], value.shape[0])
    sizes = [max(0, (size - 1) * step + 1) for size, step in zip(x.shape[1:], dilations, strict=True)]
    result = np.empty((samples, *sizes), x.dtype)
    result[...] = value.reshape(-1, *(1,) * len(sizes))
    where = (slice(None), *(slice(None, None, step) for step in dilations))
    result[where] = x
    return result
