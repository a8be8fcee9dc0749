"""Tables of operators that take no real value below 0: SQRT and RSQRT refuse it at run time, as TFLite does."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import UnsupportedError
from tflq.graph import Array
from tflq.interpreter.numerics.lookup_tables import Table, look_up


@dataclass(frozen=True, eq=False)
class NonNegative:
    """The table of one operator.

    Attributes:
        operator: for messages.
        input_zero_point: the smallest code that is allowed.
        table: int8[256] or int16[65536], by the raw bits of the code.
        multiplier: int32 of the rescale where the operator has one, else 0.
        shift: positive is left.
    """

    operator: str
    input_zero_point: int
    table: Table
    multiplier: int = 0
    shift: int = 0


def run_non_negative(params: NonNegative, x: Array) -> tuple[Array, ...]:
    """Look up: T[S, *shape] -> T[S, *shape].

    Raises:
        UnsupportedError: a code stands for a negative number.
    """
    if x.size and int(np.min(x)) < params.input_zero_point:
        raise UnsupportedError(
            f"{params.operator}: the code {int(np.min(x))} is below the zero point {params.input_zero_point}, a "
            f"negative number; TFLite refuses it"
        )
    return (look_up(params.table, x),)
