"""LSTM, UNIDIRECTIONAL_SEQUENCE_LSTM and BIDIRECTIONAL_SEQUENCE_LSTM with integers (docs/rules/tflite/index.md).

LSTM's basic cell of uint8 with an int16 state of scale 2^-11 (docs/rules/tflite/index.md).

All gates in one product: a = sat16(sum of (w - zw) * (v - 128) + bias, times f32(4096 * bias scale)), v the
concatenation of the input and the last output. Then in 16 bits, with 3 integer bits for a and 4 for the state: state =
sat16(RDBP(SRDHM(i, g), 4) + SRDHM(f, state)), y = 128 + sat8(RDBP(SRDHM(o, tanh(sat16(2 state))), 8)). A code q of the
input denotes (q - 128) / 128, whatever its scale and zero point are. The multiplication is not MBQ: ties of its shift
are rounded up.

The arithmetic is in integer_lstm.py and integer_lstm_step.py (int8 with int16 cells), eight_bit_lstm.py (the same with
gates of 8 bits, twelve intermediates) and hybrid_lstm.py (float32 with int8 or uint8 weights).

Source: TFLite kernels/lstm.cc (namespace basic), internal/reference/lstm_cell.h; ruy/apply_multiplier.h.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import cast

import numpy as np

from tflq.arrays import Integers
from tflq.errors import UnsupportedError
from tflq.graph import Array, DType, Node, Operands, Tensor
from tflq.interpreter.accumulate import MatrixProduct, accumulate_product, prepare_product
from tflq.interpreter.kernels.float.lstm import TwoLstms, lower_two, run_float, run_two
from tflq.interpreter.kernels.float.lstm_sequence import FloatLstm, Matrix
from tflq.interpreter.kernels.tflite.eight_bit_lstm import EightBitLstm, is_eight_bit, lower_eight_bit, run_eight_bit
from tflq.interpreter.kernels.tflite.hybrid_lstm import hybrid_matrix, lower_hybrid
from tflq.interpreter.kernels.tflite.integer_lstm import IntegerLstm, lower_integer
from tflq.interpreter.kernels.tflite.integer_lstm_step import run_integer
from tflq.interpreter.numerics.fixed_point import quantize_multiplier, rounding_divide_by_pot, saturate, wrap_int32
from tflq.interpreter.numerics.fixed_point import saturating_rounding_doubling_high_mul as srdhm
from tflq.interpreter.numerics.gemmlowp_int16 import Table, logistic_table, tanh_table
from tflq.interpreter.numerics.lookup_tables import look_up
from tflq.interpreter.operands.checks import meets_integer_weights, per_tensor, require_type
from tflq.interpreter.operands.lstm import basic_results, is_basic, require_basic
from tflq.interpreter.registry import Kernel

_TYPES = (DType.UINT8, DType.UINT8, DType.UINT8, DType.INT32, DType.INT16)
_RESULTS = (DType.UINT8, DType.INT16, DType.UINT8, DType.INT16)
_STATE_SCALE = 2.0**-11
_ZERO_POINT = 128
_GATE_BITS = 3


@dataclass(frozen=True, eq=False)
class BasicLstm:
    """The params of one basic cell.

    Attributes:
        product: weights [4 * U, I + U], their zero point taken off.
        bias: int64[4 * U].
        scale: (multiplier, shift).
        keeps: whether last output and state are variables, which get their new values.
    """

    product: MatrixProduct
    bias: Integers
    scale: tuple[int, int]
    keeps: tuple[bool, bool]


def lower_basic(operands: Operands) -> BasicLstm:
    """Decide the params of the basic cell.

    Args:
        operands: input [B, I], last output [B, U], weights, bias, state [B, U]; output, state and two temporaries.

    Raises:
        UnsupportedError: other types, or a state of another scale.
        GraphError: shapes that contradict each other.
    """
    keeps = require_basic(operands, _TYPES, _RESULTS)
    weights, bias = operands.input(2), operands.input(3)
    scale = per_tensor(operands.output(1))[0]
    if abs(np.log2(float(scale) / _STATE_SCALE)) >= 1e-3:
        raise UnsupportedError(f"state of scale {scale}; the basic cell takes 2^-11 only")
    shifted = operands.constant(2).astype(np.int16) - per_tensor(weights)[1]
    multiplier, shift = quantize_multiplier(float(np.float32(4096) * per_tensor(bias)[0]))
    return BasicLstm(
        prepare_product(shifted, np.iinfo(np.uint8).max),
        operands.constant(3).astype(np.int64).reshape(-1),
        (int(multiplier), int(shift)),
        keeps,
    )


def run_basic(layer: BasicLstm, arrays: Sequence[Array | None]) -> tuple[Array, ...]:
    """Run it: uint8[S, B, I], uint8[S, B, U], int16[S, B, U] -> output, state, input and last output, gate sums."""
    x, last, state = (cast(Array, arrays[i]) for i in (0, 1, 4))
    samples = max(len(x), len(last), len(state))
    wide = [np.broadcast_to(a, (samples, *a.shape[1:])) for a in (x, last)]
    together = np.concatenate(wide, axis=-1)
    total = accumulate_product(layer.product, together.astype(np.int16) - np.int16(_ZERO_POINT)).astype(np.int64)
    sums = saturate(_multiply_as_ruy(wrap_int32(total + layer.bias), *layer.scale), 16)
    gates = np.split(sums.astype(np.int16), 4, axis=-1)
    logistic, tanh = logistic_table(_GATE_BITS), tanh_table(_GATE_BITS)
    enter, update, forget, leave = (
        _apply(table, g) for table, g in zip((logistic, tanh, logistic, logistic), gates, strict=True)
    )
    added = rounding_divide_by_pot(srdhm(enter, update, 16), 4)
    new = saturate(added + srdhm(forget, state.astype(np.int64), 16), 16)
    shown = srdhm(leave, _apply(tanh, saturate(new << 1, 16).astype(np.int16)), 16)
    output = (saturate(rounding_divide_by_pot(shown, 8), 8) + _ZERO_POINT).astype(np.uint8)
    return basic_results(output, new.astype(np.int16), together, sums.astype(np.int16), layer.keeps)


def _multiply_as_ruy(x: Integers, multiplier: int, shift: int) -> Integers:
    """Multiply as the matrix library ruy does: SRDHM, then a right shift that rounds ties up and not away from zero."""
    high = srdhm(wrap_int32(x << max(shift, 0)), multiplier)
    right = max(-shift, 0)
    return (high + ((1 << right) >> 1)) >> right


def _apply(table: Table, x: Array) -> Integers:
    return look_up(table, x).astype(np.int64)


def _lower_step(node: Node, operands: Operands) -> IntegerLstm | EightBitLstm | FloatLstm | BasicLstm:
    if is_basic(node):
        return lower_basic(operands)
    if meets_integer_weights(operands, 2):
        return lower_hybrid(node, operands, sequence=False)
    if is_eight_bit(operands):
        return lower_eight_bit(node, operands)
    return lower_integer(node, operands, sequence=False)


def _lower_sequence(node: Node, operands: Operands) -> IntegerLstm | FloatLstm:
    lower = lower_hybrid if meets_integer_weights(operands, 2) else lower_integer
    return lower(node, operands, sequence=True)


def _run(params: IntegerLstm | EightBitLstm | FloatLstm | BasicLstm, *arrays: Array | None) -> tuple[Array, ...]:
    """Run it: [S, B, I], [S, B, T, I] or [S, T, B, I] -> the same with O, output state, cell state."""
    if isinstance(params, BasicLstm):
        return run_basic(params, arrays)
    if isinstance(params, FloatLstm):
        return run_float(params, *arrays)
    if isinstance(params, EightBitLstm):
        return run_eight_bit(params, arrays)
    return run_integer(params, arrays)


def _lower_both_ways(node: Node, operands: Operands) -> TwoLstms:
    asymmetric = node.attributes.boolean("asymmetric_quantize_inputs", False)

    def matrix(tensor: Tensor, data: Array, together: bool) -> Matrix:  # noqa: ARG001  # as every MakeMatrix
        require_type(tensor, (DType.INT8, DType.UINT8))
        return hybrid_matrix(tensor, data, asymmetric)

    return lower_two(node, operands, partial(lower_hybrid, sequence=True), matrix)


KERNELS = {
    "lstm": Kernel(_lower_step, _run,
        "one step of a full cell, int8 or float32 with int8 weights, or of a basic one of uint8",
        "TFLite kernels/lstm.cc"),
    "unidirectional_sequence_lstm": Kernel(_lower_sequence, _run,
        "int8 with int16 cells, and float32 with int8 weights", "TFLite kernels/unidirectional_sequence_lstm.cc"),
    "bidirectional_sequence_lstm": Kernel(_lower_both_ways, run_two,
        "one LSTM forward, one backward, with float32 activations and int8 or uint8 weights",
        "TFLite kernels/bidirectional_sequence_lstm.cc"),
}  # fmt: skip
