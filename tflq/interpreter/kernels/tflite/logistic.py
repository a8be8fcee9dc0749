"""LOGISTIC: 1 / (1 + exp(-x)), in TFLite's integer arithmetic (docs/tflite.md), made into a table.

int8, uint8: f32(1 / f32(1 + exp(f32(-t)))) of the dequantised code in float32 (`lut256`); the output scale is 1/256.
int16: x' as in sigmoid_int16.py, its magnitude interpolated with 9 fraction bits, from point 255 on 0x7FFF << 10;
y = (r + 2^9) >> 10 for x' >= 0, else (2^25 - r + 2^9 - 1) >> 10; the output scale is 1/32768.

Source: TFLite kernels/activations.cc (SigmoidPrepare) and internal/reference/integer_ops/logistic.h.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tflq.errors import UnsupportedError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.tflite.sigmoid_int16 import input_rescale, interpolate, rescaled_input
from tflq.interpreter.numerics.fixed_point import Integers
from tflq.interpreter.numerics.lookup_tables import Table, look_up, lut256, make_table
from tflq.interpreter.operands.checks import EIGHT_BITS, per_tensor, require_same_type, require_type


@dataclass(frozen=True, eq=False)
class Logistic:
    """The integers of one LOGISTIC.

    Attributes:
        table: T[256] or int16[65536], by the raw bits of the code.
        multiplier: of the int16 input; 0 for 8 bits.
        left_shift: of the int16 input.
    """

    table: Table
    multiplier: int = 0
    left_shift: int = 0


def lower(node: Node, operands: Operands) -> Logistic:  # noqa: ARG001
    """Decide the table.

    Raises:
        UnsupportedError: a type that TFLite's kernel does not take, or an output quantisation that it refuses.
        GraphError: a tensor without scale.
    """
    source, output = operands.input(0), operands.output()
    dtype = require_type(source, (*EIGHT_BITS, DType.INT16))
    require_same_type(source, output)
    (si, zi), (so, zo) = per_tensor(source), per_tensor(output)
    wanted = 1.0 / 32768 if dtype is DType.INT16 else 1.0 / 256
    if float(so) != wanted:
        raise UnsupportedError(f"the output scale is {so}; TFLite's {dtype.value} logistic takes {wanted}")
    if dtype is not DType.INT16:
        return Logistic(lut256(_sigmoid, dtype, si, zi, (so, zo)))
    multiplier, left_shift = input_rescale(operands, (0,))
    table = make_table(lambda code: _int16(rescaled_input(code, multiplier, left_shift)), dtype, dtype)
    return Logistic(table, multiplier, left_shift)


def run(params: Logistic, x: Array) -> tuple[Array, ...]:
    """Run LOGISTIC: T[S, *shape] -> T[S, *shape]."""
    return (look_up(params.table, x),)


def _sigmoid(x: NDArray[np.floating]) -> NDArray[np.floating]:
    one = np.float32(1)
    with np.errstate(over="ignore"):
        exponential = np.exp(-x.astype(np.float64)).astype(np.float32)  # float64 rounded once: see docs/tflite.md
    return np.asarray(one / (one + exponential))


def _int16(x: Integers) -> Integers:
    magnitude = np.abs(x)
    r = np.where(magnitude >> 9 >= 255, 0x7FFF << 10, interpolate(magnitude, 9))
    return np.where(x >= 0, r + (1 << 9), (1 << 25) - r + (1 << 9) - 1) >> 10
