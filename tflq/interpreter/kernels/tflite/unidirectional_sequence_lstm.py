"""UNIDIRECTIONAL_SEQUENCE_LSTM with integers: int8 with int16 cells, and float32 with int8 weights (docs/tflite.md).

Source: TFLite kernels/unidirectional_sequence_lstm.cc; the arithmetic is in integer_lstm.py, integer_lstm_step.py and
hybrid_lstm.py.
"""

from __future__ import annotations

from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.float.lstm_constants import run_float
from tflq.interpreter.kernels.float.lstm_sequence import FloatLstm
from tflq.interpreter.kernels.tflite.hybrid_lstm import is_hybrid, lower_hybrid
from tflq.interpreter.kernels.tflite.integer_lstm import IntegerLstm, lower_integer
from tflq.interpreter.kernels.tflite.integer_lstm_step import run_integer


def lower(node: Node, operands: Operands) -> IntegerLstm | FloatLstm:
    """Decide the integers of UNIDIRECTIONAL_SEQUENCE_LSTM; raises as `lower_integer` and `lower_hybrid`."""
    if is_hybrid(operands):
        return lower_hybrid(node, operands, sequence=True)
    return lower_integer(node, operands, sequence=True)


def run(params: IntegerLstm | FloatLstm, *arrays: Array | None) -> tuple[Array, ...]:
    """Run it: [S, B, T, I] or [S, T, B, I] -> [S, B, T, O] or [S, T, B, O], output state, cell state."""
    if isinstance(params, FloatLstm):
        return run_float(params, arrays)
    return run_integer(params, arrays)
