"""UNIDIRECTIONAL_SEQUENCE_LSTM in TFLite's integer arithmetic: int8 with int16 cells (docs/tflite.md).

Source: TFLite kernels/unidirectional_sequence_lstm.cc; the arithmetic is in integer_lstm.py and integer_lstm_step.py.
"""

from __future__ import annotations

from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.tflite.integer_lstm import IntegerLstm, lower_integer
from tflq.interpreter.kernels.tflite.integer_lstm_step import run_integer


def lower(node: Node, operands: Operands) -> IntegerLstm:
    """Decide the integers of UNIDIRECTIONAL_SEQUENCE_LSTM; raises as `lower_integer`."""
    return lower_integer(node, operands)


def run(integers: IntegerLstm, *arrays: Array | None) -> tuple[Array, ...]:
    """Run it: int8[S, B, T, I] or [S, T, B, I] -> int8[S, B, T, O] or [S, T, B, O], output state, cell state."""
    return run_integer(integers, arrays)
