"""ARG_MAX and ARG_MIN: the position of the largest or smallest element along one axis, the first one of equals.

NaN is passed over; if all elements are NaN the index is 0. (TFLite does so except along a last axis of float32, for
which its vectorized search leaves the result open.)

Source: TFLite kernels/arg_min_max.cc, internal/reference/arg_min_max.h.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.operands.checks import require_type, resolve_axis
from tflq.interpreter.registry import Kernel

TYPES = (DType.FLOAT32, DType.UINT8, DType.INT8, DType.INT32, DType.BOOL)


@dataclass(frozen=True)
class ArgExtreme:
    """The axis, counted in the model's own shape, and the type of the result."""

    axis: int
    output: DType


def _lower(node: Node, operands: Operands) -> ArgExtreme:
    """Read the axis from input 1.

    Raises:
        UnsupportedError: a type that TFLite's kernel does not take.
        GraphError: an axis out of range or without elements, or more than one, or computed at run time.
    """
    source, output = operands.input(0), operands.output()
    require_type(source, TYPES)
    require_type(output, (DType.INT32, DType.INT64))
    requested = node.attributes.text("output_type", output.dtype.value)
    if requested != output.dtype.value:
        raise UnsupportedError(f"output_type is {requested}, output '{output.name}' is {output.dtype.value}")
    require_type(operands.input(1), (DType.INT32, DType.INT64))
    given = operands.constant(1).reshape(-1)
    if given.size != 1:
        raise GraphError(f"input 1 names {given.size} axes; the operator takes one")
    axis = resolve_axis(int(given[0]), len(source.shape))
    if source.shape[axis] == 0:
        raise GraphError(f"axis {axis} of input '{source.name}' {source.shape} has no elements to choose from")
    return ArgExtreme(axis, output.dtype)


def _run(params: ArgExtreme, x: Array, *_axis: Array, largest: bool) -> tuple[Array, ...]:
    """Return the index of the extreme: T[S, *shape] -> int32 or int64 [S, *shape without the axis]."""
    axis = params.axis + 1
    find = np.argmax if largest else np.argmin
    if x.dtype.kind == "f" and bool(np.isnan(x).any()):
        number = ~np.isnan(x)
        compared = np.where(number, x, np.float32(-np.inf if largest else np.inf))
        best = np.take_along_axis(compared, np.expand_dims(find(compared, axis=axis), axis), axis)
        return (np.argmax(number & (compared == best), axis=axis).astype(params.output.storage),)
    return (find(x, axis=axis).astype(params.output.storage),)


KERNELS = {
    f"arg_{name}": Kernel(
        _lower,
        partial(_run, largest=largest),
        f"the index of the {what} element along an axis",
        "TFLite kernels/arg_min_max.cc",
    )
    for name, what, largest in (("max", "largest", True), ("min", "smallest", False))
}
