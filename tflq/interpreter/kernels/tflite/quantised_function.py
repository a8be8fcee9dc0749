"""EXP, ELU, GELU and LOG of quantised tensors as tables: 256 entries for 8 bits, 513 interpolated ones for int16.

All in float32.

EXP: e^x, as a table. Source: TFLite kernels/exp.cc.
ELU: x where x >= 0, else e^x - 1, as a table. Source: TFLite kernels/activations.cc (EluPrepare); the optimised kernel,
there is no reference one.
GELU: x Phi(x), or its approximation by tanh, as a table. Source: TFLite kernels/activations.cc (GeluPrepare),
internal/reference/gelu.h.
LOG: ln(x), as a table; where x <= 0 the smallest real value of the output, f32(s_o (lowest - z_o)). Source: TFLite
kernels/elementwise.cc (LogLUTPrepare).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.numerics import transcendental
from tflq.interpreter.numerics.lookup_tables import (
    FloatFunction,
    Table,
    look_up,
    look_up_513,
    lut256,
    lut513,
    make_table,
)
from tflq.interpreter.operands.checks import EIGHT_BITS, per_tensor, require_same_type, require_symmetric, require_type
from tflq.interpreter.registry import Kernel


@dataclass(frozen=True, eq=False)
class QuantisedFunction:
    """The table of one operator.

    Attributes:
        table: T[256] or int16[65536], by the raw bits of the quantized value.
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
        require_symmetric(source, output)
    points = lut513(function, float(si), zi, float(so), np.float32)
    return QuantisedFunction(make_table(lambda code: look_up_513(points, code), dtype, dtype), points)


def _run(params: QuantisedFunction, x: Array) -> tuple[Array, ...]:
    return (look_up(params.table, x),)


def _lower_gelu(node: Node, operands: Operands) -> QuantisedFunction:
    function = partial(transcendental.gelu, approximate=node.attributes.boolean("approximate", False))
    return lower_function(operands, (*EIGHT_BITS, DType.INT16), function, symmetric=False)


def _lower_log(node: Node, operands: Operands) -> QuantisedFunction:  # noqa: ARG001
    scale, zero_point = per_tensor(operands.output())
    smallest = np.float32(operands.output().dtype.minimum - zero_point) * scale

    def logarithm(x: NDArray[np.floating]) -> NDArray[np.floating]:
        return np.where(x <= 0, smallest, transcendental.log(x))

    return lower_function(operands, (DType.INT8, DType.INT16), logarithm)


def _elu(x: NDArray[np.floating]) -> NDArray[np.floating]:
    return np.where(x < 0, transcendental.expm1(x), x)


KERNELS = {
    "exp": Kernel(lambda _, operands: lower_function(operands, (DType.INT8, DType.INT16), transcendental.exp), _run),
    "elu": Kernel(lambda _, operands: lower_function(operands, (DType.INT8,), _elu), _run),
    "gelu": Kernel(_lower_gelu, _run),
    "log": Kernel(_lower_log, _run),
}
