"""Quantised real functions as tables: 256 entries for 8 bits, 513 interpolated ones for int16, all in float32."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from tflq.graph import Array, DType, Operands
from tflq.interpreter.numerics.lookup_tables import (
    FloatFunction,
    Table,
    look_up,
    look_up_513,
    lut256,
    lut513,
    make_table,
)
from tflq.interpreter.operands.checks import (
    per_tensor,
    require_same_type,
    require_type,
    require_zero_points_of_zero,
)


@dataclass(frozen=True, eq=False)
class QuantisedFunction:
    """The table of one operator.

    Attributes:
        table: T[256] or int16[65536], by the raw bits of the code.
        points: int16[513], from which the table of int16 is interpolated; None for 8 bits.
    """

    table: Table
    points: Table | None = None


def lower_function(
    operands: Operands, allowed: Collection[DType], function: FloatFunction, symmetric: bool = True
) -> QuantisedFunction:
    """Make the table of a function between two quantised tensors of equal type.

    Args:
        operands: of the node.
        allowed: types that TFLite's kernel takes.
        function: takes and returns float32.
        symmetric: whether int16 must have zero points of 0; TFLite checks it for some operators only, and ignores
            zero points of int16 in the lookup.

    Raises:
        UnsupportedError: another type, or int16 with a zero point.
        GraphError: a tensor without scale.
    """
    source, output = operands.input(0), operands.output()
    dtype = require_type(source, allowed)
    require_same_type(source, output)
    (si, zi), (so, zo) = per_tensor(source), per_tensor(output)
    if dtype is not DType.INT16:
        return QuantisedFunction(lut256(function, dtype, si, zi, (so, zo)))
    if symmetric:
        require_zero_points_of_zero(source, output)
    points = lut513(function, float(si), zi, float(so), np.float32)
    return QuantisedFunction(make_table(lambda code: look_up_513(points, code), dtype, dtype), points)


def run_function(params: QuantisedFunction, x: Array) -> tuple[Array, ...]:
    """Look up: T[S, *shape] -> T[S, *shape]."""
    return (look_up(params.table, x),)
