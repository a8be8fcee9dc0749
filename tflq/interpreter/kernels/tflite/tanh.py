"""TANH, in TFLite's integer arithmetic (docs/tflite.md), made into a table.

int8, uint8: tanh of the dequantised code in float32 (`lut256`), any output quantisation. int16: tanh(x) = 2
sigmoid(2x) - 1; x' as in sigmoid_int16.py, its magnitude interpolated with 8 fraction bits, from point 255 on 0xFFFF
<< 8; y = (r - 2^23 + 2^7) >> 8 for x' >= 0, else (-r + 2^23 + 2^7 - 1) >> 8; the output scale is 1/32768.

Source: TFLite kernels/activations.cc (TanhPrepare) and internal/reference/integer_ops/tanh.h.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.tflite.sigmoid_int16 import input_rescale, interpolate, rescaled_input
from tflq.interpreter.numerics.fixed_point import Integers
from tflq.interpreter.numerics.lookup_tables import Table, look_up, lut256, make_table
from tflq.interpreter.operands.checks import EIGHT_BITS, per_tensor, require_same_type, require_type


@dataclass(frozen=True, eq=False)
class Tanh:
    """The integers of one TANH.

    Attributes:
        table: T[256] or int16[65536], by the raw bits of the code.
        multiplier: of the int16 input; 0 for 8 bits.
        left_shift: of the int16 input.
    """

    table: Table
    multiplier: int = 0
    left_shift: int = 0


def lower(node: Node, operands: Operands) -> Tanh:  # noqa: ARG001
    """Decide the table.

    Raises:
        UnsupportedError: a type that TFLite's kernel does not take, or an int16 quantisation that it refuses.
        GraphError: a tensor without scale.
    """
    source, output = operands.input(0), operands.output()
    dtype = require_type(source, (*EIGHT_BITS, DType.INT16))
    require_same_type(source, output)
    if dtype is not DType.INT16:
        return Tanh(lut256(_tanh, dtype, *per_tensor(source), per_tensor(output)))
    multiplier, left_shift = input_rescale(operands, (0, 1))
    table = make_table(lambda code: _int16(rescaled_input(code, multiplier, left_shift)), dtype, dtype)
    return Tanh(table, multiplier, left_shift)


def run(params: Tanh, x: Array) -> tuple[Array, ...]:
    """Run TANH: T[S, *shape] -> T[S, *shape]."""
    return (look_up(params.table, x),)


def _tanh(x: NDArray[np.floating]) -> NDArray[np.floating]:
    return np.tanh(x.astype(np.float64)).astype(np.float32)  # float64 rounded once: see docs/tflite.md


def _int16(x: Integers) -> Integers:
    magnitude = np.abs(x)
    r = np.where(magnitude >> 8 >= 255, 0xFFFF << 8, interpolate(magnitude, 8))
    return np.where(x >= 0, r - (1 << 23) + (1 << 7), -r + (1 << 23) + (1 << 7) - 1) >> 8
