"""LSTM with integers: one step of a full cell, int8 or float32 with int8 weights, or of a basic one of uint8.

Full cells of int8 have int16 states, and gates of 16 bits or, with twelve intermediates, of 8 (docs/tflite.md).

Source: TFLite kernels/lstm.cc; the arithmetic is in integer_lstm.py, integer_lstm_step.py, eight_bit_lstm.py,
hybrid_lstm.py and basic_lstm.py.
"""

from __future__ import annotations

from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.float.lstm_constants import run_float
from tflq.interpreter.kernels.float.lstm_sequence import FloatLstm
from tflq.interpreter.kernels.tflite.basic_lstm import BasicLstm, lower_basic, run_basic
from tflq.interpreter.kernels.tflite.eight_bit_lstm import EightBitLstm, is_eight_bit, lower_eight_bit
from tflq.interpreter.kernels.tflite.eight_bit_lstm_step import run_eight_bit
from tflq.interpreter.kernels.tflite.hybrid_lstm import is_hybrid, lower_hybrid
from tflq.interpreter.kernels.tflite.integer_lstm import IntegerLstm, lower_integer
from tflq.interpreter.kernels.tflite.integer_lstm_step import run_integer
from tflq.interpreter.operands.basic_lstm import is_basic


def lower(node: Node, operands: Operands) -> IntegerLstm | EightBitLstm | FloatLstm | BasicLstm:
    """Decide the integers of LSTM; raises as the functions that it calls."""
    if is_basic(node):
        return lower_basic(operands)
    if is_hybrid(operands):
        return lower_hybrid(node, operands, sequence=False)
    if is_eight_bit(operands):
        return lower_eight_bit(node, operands)
    return lower_integer(node, operands, sequence=False)


def run(params: IntegerLstm | EightBitLstm | FloatLstm | BasicLstm, *arrays: Array | None) -> tuple[Array, ...]:
    """Run it: [S, B, I] -> [S, B, O], output state, cell state."""
    if isinstance(params, BasicLstm):
        return run_basic(params, arrays)
    if isinstance(params, FloatLstm):
        return run_float(params, arrays)
    if isinstance(params, EightBitLstm):
        return run_eight_bit(params, arrays)
    return run_integer(params, arrays)
